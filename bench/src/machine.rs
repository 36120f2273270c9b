//! What the machine itself gives: processor time used, and how many times a second it can make a write durable.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

use crate::Fault;

/// Processor time of this process, all threads, user and system.
pub(crate) fn cpu() -> Duration {
    let used = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(u64::try_from(used.tv_sec).unwrap_or(0), u32::try_from(used.tv_nsec).unwrap_or(0))
}

/// Processor time of another process and of those that it has started.
pub(crate) fn cpu_of(process: u32) -> Result<Duration, Fault> {
    let mut nanos = 0;
    for task in fs::read_dir(format!("/proc/{process}/task"))? {
        let task = task?.path();
        // A thread may end meanwhile.
        let used = fs::read_to_string(task.join("schedstat")).unwrap_or_default();
        nanos += used.split(' ').next().and_then(|nanos| nanos.parse().ok()).unwrap_or(0);
        for child in fs::read_to_string(task.join("children")).unwrap_or_default().split_whitespace() {
            nanos += u64::try_from(cpu_of(child.parse()?)?.as_nanos())?;
        }
    }
    Ok(Duration::from_nanos(nanos))
}

/// What a process keeps in memory, in KiB.
pub(crate) fn resident(process: u32) -> Result<u64, Fault> {
    let status = fs::read_to_string(format!("/proc/{process}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")?.split_whitespace().next());
    Ok(line.ok_or("the kernel does not say what is resident")?.parse()?)
}

/// Appends of 4 KiB, each made durable by fdatasync before the next, per second: one stream, as a writer is one.
pub(crate) fn fsyncs_per_second(dir: &Path, span: Duration) -> Result<f64, Fault> {
    let path = dir.join("fsync-probe");
    let mut file = File::create(&path)?;
    let page = [0x5a; 4096];
    let begun = Instant::now();
    let mut count = 0_u32;
    while begun.elapsed() < span {
        file.write_all(&page)?;
        file.sync_data()?;
        count += 1;
    }
    let rate = f64::from(count) / begun.elapsed().as_secs_f64();
    fs::remove_file(&path)?;
    Ok(rate)
}

/// One line on where the figures were taken.
pub(crate) fn describe() -> String {
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let cpu = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpu.lines().find_map(|line| line.strip_prefix("model name")?.split(':').nth(1)).unwrap_or("unknown");
    format!(
        "{cores} cores ({}), kernel {}, SQLite {}, load average {}",
        model.trim(),
        kernel.trim(),
        rusqlite::version(),
        load()
    )
}

/// How many threads wanted to run, on average over the last minute.
pub(crate) fn load() -> String {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().unwrap_or("unknown").to_owned()
}
