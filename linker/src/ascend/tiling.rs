//! Writes the scalars of a launch as a C++ struct.

use crate::ascend::names::camel;
use avsg_device::tiling::Tiling;

/// Returns the struct of the launch scalars, with assertions that its layout is that of the host.
pub fn tiling() -> String {
    let (mut fields, mut asserts) = (String::new(), vec![]);
    for field in Tiling::FIELDS {
        let name = camel(field.name);
        let array = if field.array > 0 { format!("[{}]", field.array) } else { String::new() };
        let declared = format!("    int32_t {name}{array};");
        fields += &format!("{declared:<36}// {}\n", field.doc);
        asserts.push(format!("__builtin_offsetof(Tiling, {name}) == {}", field.offset));
    }
    asserts.push(format!("sizeof(Tiling) == {}", size_of::<Tiling>()));
    let asserts: Vec<_> = asserts.chunks(2).map(|two| two.join(" && ")).collect();
    format!(
        "// The scalars of a launch, as the host writes them.\nstruct Tiling {{\n{fields}}};\n\
         static_assert({}, \"Tiling\");",
        asserts.join("\n    && ")
    )
}
