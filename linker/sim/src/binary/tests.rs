use super::*;

#[test]
fn each_kernel_of_a_text_has_the_type_behind_its_name_or_the_only_one() {
    let kernel = |name, ty: &str| format!("extern \"C\" void {name}(int)\n{{\n    {ty}\n}}\n");
    let (vector, mix) =
        (format!("{TYPE}KERNEL_TYPE_AIV_ONLY);"), format!("{TYPE}KERNEL_TYPE_MIX_AIV_1_0);"));
    let text = [kernel("plan", &vector), kernel("step", &mix), kernel("append", &vector)].concat();
    let waiting = |text: &str| ["plan", "step", "append"].map(|name| waits_for_all(text, name));
    assert_eq!(waiting(&text), [false, true, false]);
    let untyped = ["plan", "step", "append"].map(|name| kernel(name, "")).concat();
    assert_eq!(waiting(&format!("{mix}\n{untyped}")), [true; 3], "a type for the whole file");
    assert_eq!(waiting(&format!("{vector}\n{untyped}")), [false; 3]);
    assert_eq!(waiting(""), [false; 3]);
}
