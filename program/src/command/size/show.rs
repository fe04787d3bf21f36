//! The figures of `avsg size` as a page.

use super::disk_times::Disk;
use super::report::{Copies, Point, Report};
use super::time::{Model, Times};
use crate::baseline::{NO_BUFFER, NO_REPEATS};
use crate::command::output::{Page, Table, beside_gathers, bytes, count, short};
use crate::disk::Speeds;

/// Returns the page: the recommended S, a row for each S, and what was assumed.
pub fn page(report: &Report) -> Page {
    let mut page = Page::default();
    let chosen = report.recommended.as_ref();
    let at = chosen.and_then(|best| report.points.iter().position(|p| p.slots == best.slots));
    report.taken.warning.iter().for_each(|warning| page.text(warning));
    match (at, [&report.no_buffer, &report.no_repeats]) {
        (Some(at), [Some(every), Some(once)]) => {
            page.text(verdict(report, &report.points[at], [every, once]));
            page.table(&table(report));
            page.text(format!("why       {}", reason(report, at)));
        }
        (_, [None, _] | [_, None]) => {
            page.text("No step after the first selects an id, so there is no hit rate.")
        }
        (None, _) => {
            page.text(unmet(report));
            page.table(&table(report));
        }
    }
    if let Some(ceiling) = report.ceiling {
        page.text(format!(
            "ceiling   {ceiling:.2} % of hits; all other ids are selected for the first time"
        ));
    }
    page.text(format!("assumed   {}", deployed(report)));
    page.text(format!("trace     {}", report.taken.words()));
    if let Some(model) = &report.model {
        page.text(format!("model     {}", formula(report, model)));
        model.disk.iter().for_each(|disk| page.text(format!("disk      {}", described(disk))));
    }
    page
}

/// Returns the answer: S, its rule, and what they gain beside the gathers without a buffer.
fn verdict(report: &Report, point: &Point, gathers: [&Copies; 2]) -> String {
    let Point { slots, lifetime, hit_rate, .. } = point;
    let copied = point.copies.as_ref().map_or(0.0, |copies| copies.bytes_per_step);
    let all = gathers.map(|gather| gather.bytes_per_step);
    let worst = point.worst.as_ref();
    let worst = worst.map(|w| format!(" ({:.2} % in the worst, {})", w.hit_rate, w.trace));
    let times = point.copies.as_ref().and_then(|copies| copies.times).map(|times| {
        let ms = ranged(times.map(|times| times.deciding()));
        let place = if times[0].disk.is_some() { " with rows on the disk" } else { "" };
        let all = gathers.map(|gather| gather.ms().unwrap_or(f64::NAN));
        let (unit, own) = (milliseconds(report), times[0].deciding());
        format!("; {ms} {unit} per token{place}, {}", beside_gathers("as fast as", all, own))
    });
    format!(
        "take S = {slots}, {lifetime}: {:.2} % of hits{}, {}{}; {} of device memory for {} and {}",
        hit_rate.unwrap_or_default(),
        worst.unwrap_or_default(),
        beside_gathers("fewer bytes than", all, copied),
        times.unwrap_or_default(),
        bytes(point.device_bytes),
        count(report.deployment.model.layers, "layer"),
        count(report.deployment.model.requests, "request")
    )
}

/// Returns the deployment in words, with the options that change it.
fn deployed(report: &Report) -> String {
    let (d, m) = (&report.deployment, &report.deployment.model);
    let each = if report.traces > 1 { "the mean of the traces" } else { "the trace" };
    format!(
        "{} (--layers), {} (--indexers), {} (--requests), all like {each}; {} of context (--context) in rows of {} bytes \
         (--row-bytes): {} in the host pool; 1 MB is 10^6 bytes",
        count(m.layers, "layer"),
        count(m.indexers, "indexer"),
        count(m.requests, "request"),
        count(d.context, "token"),
        m.row_bytes,
        bytes(d.host_bytes)
    )
}

/// Returns the unit of times, with what they are times of.
fn milliseconds(report: &Report) -> &'static str {
    let is_whole = report.model.as_ref().is_some_and(|model| model.step_ms.is_some());
    if is_whole { "ms" } else { "ms of KV offload" }
}

/// A column of times, of which the last ones need a disk.
type TimeColumn = (&'static str, fn(Times) -> f64);

/// Returns what a step copies, the memory, and the times by the model at each S.
fn table(report: &Report) -> Table {
    const TIMES: [TimeColumn; 4] = [
        ("MS per token", |times| times.host.tpot_ms),
        ("speed-up", |times| times.host.speed_up),
        ("disk: MS per token", |times| times.deciding()),
        ("disk: speed-up", |times| times.disk.map_or(f64::NAN, |disk| disk.speed_up)),
    ];
    let shown = report.model.as_ref().map_or(0, |model| 2 + 2 * usize::from(model.disk.is_some()));
    let columns = ["S", "rule", "hits, %", "copied per step", "device memory"].into_iter();
    let times = TIMES[..shown].iter().map(|(name, _)| name.replace("MS", milliseconds(report)));
    let mut table = Table::new(columns.map(str::to_owned).chain(times));
    let mut add = |first: [String; 3], copies: &Option<Copies>, device: String| {
        let mut row = first.to_vec();
        let copied = copies.as_ref().map(|copies| bytes(copies.bytes_per_step as usize));
        row.extend([copied.unwrap_or_default(), device]);
        for times in copies.iter().filter_map(|copies| copies.times) {
            row.extend(TIMES[..shown].iter().map(|(_, of)| ranged(times.map(of))));
        }
        table.add_row(row);
    };
    for (gather, copies) in [(NO_BUFFER, &report.no_buffer), (NO_REPEATS, &report.no_repeats)] {
        add([String::new(), gather.into(), String::new()], copies, String::new());
    }
    for point in &report.points {
        let rate = point.hit_rate.map(|rate| format!("{rate:.2}")).unwrap_or_default();
        let first = [point.slots.to_string(), point.lifetime.clone(), rate];
        add(first, &point.copies, bytes(point.device_bytes));
    }
    table
}

/// Formats a number, and behind it the range that its measurements give it, if there is one.
fn ranged([value, a, b]: [f64; 3]) -> String {
    let [value, low, high] = [value, a.min(b), a.max(b)].map(short);
    if low == high { value } else { format!("{value} ({low} to {high})") }
}

/// Returns a disk and its records in words.
fn described(disk: &Disk) -> String {
    let Speeds { reads_per_second, gbs, us } = disk.speeds;
    let measured = disk.folder.as_ref().map(|folder| format!("measured in {folder}"));
    format!(
        "{} reads per second, {} GB/s, {} us for a read alone, {}; blocks of {}, records of at most {} bytes, {:.1} % of \
         {} are padding; a step waits for each indexer for {} us + its reads by their number or bandwidth",
        short(reads_per_second),
        short(gbs),
        short(us),
        measured.unwrap_or_else(|| "as given".to_owned()),
        disk.block,
        disk.record_bytes,
        disk.padding_percent,
        bytes(disk.file_bytes as usize),
        short(us)
    )
}

/// Returns the model as a formula with its numbers.
fn formula(report: &Report, model: &Model) -> String {
    let (rest, alone) = match model.step_ms {
        Some(ms) => (format!("{ms} ms of the step + "), ""),
        None => (String::new(), " (--step-ms adds the rest of a step)"),
    };
    let matching = match model.match_us {
        Some(us) => format!("{us} us as given"),
        None => {
            let slow = if cfg!(debug_assertions) { " by a build without optimisation" } else { "" };
            format!(
                "measured on this machine's CPU with {}{slow}, medians with first and ninth decile; --match-us takes that of \
                 your device",
                model.machine
            )
        }
    };
    let link = match model.link_measured {
        true => format!("{} GB/s (measured: a core copies rows in memory)", short(model.link_gbs)),
        false => format!("{} GB/s", model.link_gbs),
    };
    format!(
        "{} per token = ({rest}matching + copied bytes / {link}) / {:.2} tokens per step{alone}; matching of a token with \
         K = {}: {matching}; each request matches on a core of its own",
        milliseconds(report),
        model.accepted,
        report.taken.k
    )
}

/// Returns why the point at a place is recommended, and what speaks against any buffer.
fn reason(report: &Report, at: usize) -> String {
    let point = &report.points[at];
    let context = report.deployment.host_bytes;
    let pays = at > 0 && point.pays(&report.points[at - 1]);
    let wish = &report.wish;
    let mut words = match pays {
        _ if wish.hit_rate.is_some() || wish.tpot_ms.is_some() => {
            format!("the least measured S with {}", wished(report))
        }
        _ if wish.device_bytes.is_some() => format!("no S copies less with {}", wished(report)),
        true => "the last S that pays: it divides the copies by at least as much as it multiplies the slots".to_owned(),
        false if report.points.len() == 1 => "the only measured S".to_owned(),
        false => "no larger S pays: none divides the copies by as much as it multiplies the slots".to_owned(),
    };
    let rows = format!("all rows of the context, {}", bytes(context));
    let left_out = || report.points[at..].windows(2).any(|pair| pair[1].pays(&pair[0]));
    if point.device_bytes >= context {
        words += &format!("; but it takes at least as much device memory as {rows}");
    } else if wished(report).is_empty() && left_out() {
        words += &format!(" (left out are S that take at least as much device memory as {rows})");
    }
    if point.ms() > report.no_repeats.as_ref().and_then(Copies::ms) {
        words += "; but a gather without repeats is faster, because matching takes longer than what it saves";
    }
    words
}

/// Says that no measured S has the wish, and what comes nearest.
fn unmet(report: &Report) -> String {
    let most = report.points.iter().filter_map(|p| p.hit_rate).fold(0.0, f64::max);
    let least = report.points.iter().filter_map(Point::ms).fold(f64::INFINITY, f64::min);
    let mut nearest = vec![format!("the most is {most:.2} % of hits")];
    if report.wish.tpot_ms.is_some() {
        let (least, ms) = (short(least), milliseconds(report));
        nearest.push(format!("the least time is {least} {ms} per token"));
    }
    if let (Some(_), Some(point)) = (report.wish.device_bytes, report.points.first()) {
        let (slots, memory) = (point.slots, bytes(point.device_bytes));
        nearest.push(format!("the least S, {slots}, takes {memory} of device memory"));
    }
    format!("take none: no measured S has {}; {}", wished(report), nearest.join(", "))
}

fn wished(report: &Report) -> String {
    let wish = &report.wish;
    let hits = wish.hit_rate.map(|rate| format!("{rate} % of hits"));
    let time = wish.tpot_ms.map(|ms| format!("at most {ms} {} per token", milliseconds(report)));
    let memory =
        wish.device_bytes.map(|n| format!("at most {} of device memory", bytes(n as usize)));
    hits.into_iter().chain(time).chain(memory).collect::<Vec<_>>().join(" and ")
}
