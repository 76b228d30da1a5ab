//! Owns where a process's CPU quota is written down: the files of its cgroup and of every cgroup
//! above it, in version 2 (`cpu.max`) and version 1 (`cpu.cfs_quota_us`); see cgroups(7).

use std::path::{Component, Path, PathBuf};

use crate::sampler::read::text;

/// The smallest CPU quota in force on this process, in CPUs; `None` without one.
///
/// # Errors
/// Why it cannot be said: no cgroup with a CPU controller can be seen here.
pub(super) fn smallest_quota() -> Result<Option<f64>, String> {
    let folders = cpu_folders(&text("/proc/self/cgroup")?, &text("/proc/self/mountinfo")?);
    if folders.is_empty() {
        return Err("no cgroup file system with CPU accounting is mounted here".into());
    }
    // The topmost group, and one whose parent does not hand the controller down, has no such file.
    let read = |path: PathBuf| text(path.to_str()?).ok();
    let quotas = folders.iter().filter_map(|folder| match folder {
        Folder::V2(path) => parse_cpu_max(&read(path.join("cpu.max"))?),
        Folder::V1(path) => {
            parse_v1(&read(path.join("cpu.cfs_quota_us"))?, &read(path.join("cpu.cfs_period_us"))?)
        }
    });
    Ok(quotas.min_by(f64::total_cmp))
}

/// A folder that may hold a quota.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Folder {
    /// Of the unified hierarchy.
    V2(PathBuf),
    /// Of a hierarchy with the `cpu` controller of its own.
    V1(PathBuf),
}

/// The folders of the process's groups and of all groups above, from `/proc/self/cgroup` and
/// `/proc/self/mountinfo`.
fn cpu_folders(cgroup: &str, mountinfo: &str) -> Vec<Folder> {
    let mut folders = Vec::new();
    for line in cgroup.lines() {
        // `hierarchy:controllers:path`, and the path may hold colons of its own.
        let mut parts = line.splitn(3, ':');
        let (Some(_), Some(controllers), Some(path)) = (parts.next(), parts.next(), parts.next()) else {
            continue;
        };
        let unified = controllers.is_empty();
        if !unified && !controllers.split(',').any(|controller| controller == "cpu") {
            continue;
        }
        for mount in mountinfo.lines().filter_map(parse_mount) {
            let fits = match unified {
                true => mount.kind == "cgroup2",
                false => mount.kind == "cgroup" && mount.options.split(',').any(|option| option == "cpu"),
            };
            if fits {
                let wrap = if unified { Folder::V2 } else { Folder::V1 };
                folders.extend(mount.folders_up_from(Path::new(path)).into_iter().map(wrap));
            }
        }
    }
    folders
}

/// One line of `/proc/self/mountinfo`; see proc_pid_mountinfo(5).
struct Mount<'a> {
    /// The folder of the file system that is mounted.
    root: &'a str,
    /// Where.
    point: &'a str,
    /// File system type.
    kind: &'a str,
    /// Options of the file system: the controllers, for version 1.
    options: &'a str,
}

fn parse_mount(line: &str) -> Option<Mount<'_>> {
    // The number of optional fields differs; a lone hyphen ends them.
    let (first, second) = line.split_once(" - ")?;
    let mut first = first.split(' ').skip(3);
    let mut second = second.split(' ');
    Some(Mount {
        root: first.next()?,
        point: first.next()?,
        kind: second.next()?,
        options: second.nth(1).unwrap_or(""),
    })
}

impl Mount<'_> {
    /// The group's folder and those above it. A group outside of what is mounted (a container that
    /// is shown its host's path) leaves the top of the mount.
    fn folders_up_from(&self, group: &Path) -> Vec<PathBuf> {
        let point = Path::new(self.point);
        let plain = |path: &&Path| path.components().all(|part| matches!(part, Component::Normal(_)));
        let below = group.strip_prefix(self.root).ok().filter(plain).unwrap_or(Path::new(""));
        below
            .ancestors()
            .map(|path| if path == Path::new("") { point.into() } else { point.join(path) })
            .collect()
    }
}

/// Reads `cpu.max`: `max 100000` without a quota, else microseconds out of a period.
fn parse_cpu_max(text: &str) -> Option<f64> {
    let (quota, period) = text.trim().split_once(' ')?;
    ratio(quota.parse().ok()?, period.trim().parse().ok()?)
}

/// Reads `cpu.cfs_quota_us`, -1 without a quota, and `cpu.cfs_period_us`.
fn parse_v1(quota: &str, period: &str) -> Option<f64> {
    let quota: i64 = quota.trim().parse().ok()?;
    ratio(u64::try_from(quota).ok()?, period.trim().parse().ok()?)
}

/// Version 1 prints a quota and a period of zero where the group has no say.
fn ratio(quota: u64, period: u64) -> Option<f64> {
    (quota > 0 && period > 0).then(|| quota as f64 / period as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotas_of_both_versions() {
        assert_eq!(parse_cpu_max("150000 100000\n"), Some(1.5));
        for text in ["max 100000\n", "", "100000", "1 0", "-1 100000"] {
            assert_eq!(parse_cpu_max(text), None, "{text:?}");
        }
        assert_eq!(parse_v1("50000\n", "100000\n"), Some(0.5));
        for (quota, period) in [("-1\n", "100000\n"), ("-1\n", "0\n"), ("0", "100000"), ("", "1")] {
            assert_eq!(parse_v1(quota, period), None, "{quota:?} {period:?}");
        }
    }

    fn paths(cgroup: &str, mountinfo: &str) -> Vec<Folder> {
        cpu_folders(cgroup, mountinfo)
    }

    #[test]
    fn every_group_up_to_the_mount_is_looked_at() {
        let unified = "31 23 0:28 / /sys/fs/cgroup rw,relatime shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";
        let v2 = |path: &str| Folder::V2(path.into());
        assert_eq!(
            paths("0::/user.slice/a:b.scope\n", unified),
            [
                v2("/sys/fs/cgroup/user.slice/a:b.scope"),
                v2("/sys/fs/cgroup/user.slice"),
                v2("/sys/fs/cgroup")
            ]
        );
        assert_eq!(paths("0::/\n", unified), [v2("/sys/fs/cgroup")]);
        // Outside of the cgroup namespace.
        assert_eq!(paths("0::/../../other\n", unified), [v2("/sys/fs/cgroup")]);
    }

    #[test]
    fn version_1_is_found_by_its_controller() {
        let mounts = "33 31 0:30 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n\
                      34 31 0:31 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n";
        let groups = "3:cpuset:/x\n2:cpu,cpuacct:/docker/abc\n1:name=systemd:/\n";
        let v1 = |path: &str| Folder::V1(format!("/sys/fs/cgroup/cpu,cpuacct{path}").into());
        assert_eq!(paths(groups, mounts), [v1("/docker/abc"), v1("/docker"), v1("")]);
        // A container that sees only its own group, mounted as the top.
        let inside = "33 31 0:30 /docker/abc /sys/fs/cgroup/cpu,cpuacct ro - cgroup cgroup rw,cpu,cpuacct\n";
        assert_eq!(paths(groups, inside), [v1("")]);
        assert_eq!(paths("garbage\n\n", "more garbage\n"), []);
    }
}
