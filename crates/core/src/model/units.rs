//! Units: integers with a meaning, so that the compiler rejects a sum of seconds and bytes.
//!
//! Time is in nanoseconds, CPU and GPUs in thousandths (members may share a GPU), memory in bytes, rates in bits per
//! second. Arithmetic saturates: an overflow stays at the maximum instead of wrapping to a plausible value.

mod moment;
mod quantity;

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Sub, SubAssign};

use serde::{Deserialize, Serialize};

pub use moment::{Moment, MomentError};
pub use quantity::{QuantityError, parse_share};

macro_rules! amounts {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub u64);

        impl $name {
            pub const ZERO: Self = Self(0);

            pub const fn is_zero(self) -> bool {
                self.0 == 0
            }

            pub fn checked_sub(self, other: Self) -> Option<Self> {
                self.0.checked_sub(other.0).map(Self)
            }

            pub const fn times(self, count: u64) -> Self {
                Self(self.0.saturating_mul(count))
            }
        }

        impl Add for $name {
            type Output = Self;
            fn add(self, other: Self) -> Self {
                Self(self.0.saturating_add(other.0))
            }
        }

        impl AddAssign for $name {
            fn add_assign(&mut self, other: Self) {
                *self = *self + other;
            }
        }

        impl Sub for $name {
            type Output = Self;
            fn sub(self, other: Self) -> Self {
                Self(self.0.saturating_sub(other.0))
            }
        }

        impl SubAssign for $name {
            fn sub_assign(&mut self, other: Self) {
                *self = *self - other;
            }
        }

        impl Sum for $name {
            fn sum<I: Iterator<Item = Self>>(items: I) -> Self {
                items.fold(Self::ZERO, Add::add)
            }
        }
    )*};
}

amounts! {
    /// A span of time in nanoseconds.
    Duration;
    /// Thousandths of a CPU core.
    Cpu;
    /// Bytes of memory.
    Memory;
    /// Thousandths of a GPU.
    Gpus;
    /// Bytes on the wire or on disk.
    Bytes;
    /// Bits per second.
    Bandwidth;
    /// Training iterations.
    Iterations;
}

impl Duration {
    pub const SECOND: Self = Self(1_000_000_000);
    pub const MINUTE: Self = Self(60 * Self::SECOND.0);
    pub const HOUR: Self = Self(60 * Self::MINUTE.0);

    pub const fn from_secs(seconds: u64) -> Self {
        Self(seconds.saturating_mul(Self::SECOND.0))
    }

    /// Whole seconds, rounded down.
    pub const fn as_secs(self) -> u64 {
        self.0 / 1_000_000_000
    }

    pub const fn from_millis(millis: u64) -> Self {
        Self(millis.saturating_mul(1_000_000))
    }

    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / Self::SECOND.0 as f64
    }
}

impl Gpus {
    /// One whole device.
    pub const ONE: Self = Self(1000);

    pub const fn whole(count: u64) -> Self {
        Self(count.saturating_mul(Self::ONE.0))
    }

    /// Whether the amount is a multiple of whole devices, zero included.
    pub const fn is_whole(self) -> bool {
        self.0.is_multiple_of(Self::ONE.0)
    }

    /// Whether the amount is a share of one device.
    pub const fn is_share(self) -> bool {
        0 < self.0 && self.0 < Self::ONE.0
    }

    /// Number of whole devices.
    pub const fn devices(self) -> u64 {
        self.0 / Self::ONE.0
    }
}

impl Cpu {
    pub const fn cores(count: u64) -> Self {
        Self(count.saturating_mul(1000))
    }
}

impl Memory {
    pub const fn gib(count: u64) -> Self {
        Self(count.saturating_mul(1 << 30))
    }
}

/// A point in time: nanoseconds since the start of the world.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Instant(pub u64);

impl Instant {
    pub const START: Self = Self(0);

    pub const fn from_secs(seconds: u64) -> Self {
        Self(seconds.saturating_mul(Duration::SECOND.0))
    }

    /// Time since `earlier`; zero if `earlier` is later.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration(self.0.saturating_sub(earlier.0))
    }

    /// First multiple of `tick` at or after this time; the time itself if `tick` is zero.
    pub const fn rounded_up(self, tick: Duration) -> Self {
        match tick.0 {
            0 => self,
            tick => Self(self.0.div_ceil(tick).saturating_mul(tick)),
        }
    }

    pub fn as_secs_f64(self) -> f64 {
        Duration(self.0).as_secs_f64()
    }
}

impl Add<Duration> for Instant {
    type Output = Self;
    fn add(self, span: Duration) -> Self {
        Self(self.0.saturating_add(span.0))
    }
}

/// GPU time: thousandths of a GPU times nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct GpuTime(pub u128);

impl GpuTime {
    pub const fn of(gpus: Gpus, time: Duration) -> Self {
        Self(gpus.0 as u128 * time.0 as u128)
    }

    pub const fn gpu_seconds(seconds: u64) -> Self {
        Self::of(Gpus::whole(1), Duration::from_secs(seconds))
    }

    pub fn as_gpu_seconds_f64(self) -> f64 {
        self.0 as f64 / (1000.0 * Duration::SECOND.0 as f64)
    }

    /// Time in which `gpus` reach this GPU time; `None` for zero GPUs.
    pub fn time_on(self, gpus: Gpus) -> Option<Duration> {
        if gpus.is_zero() {
            return None;
        }
        Some(Duration(u64::try_from(self.0.div_ceil(u128::from(gpus.0))).unwrap_or(u64::MAX)))
    }
}

impl Add for GpuTime {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl Sub for GpuTime {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

/// Part of a whole, in millionths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Share(pub u32);

impl Share {
    pub const NONE: Self = Self(0);
    pub const WHOLE: Self = Self(1_000_000);

    /// `part` of `whole`, at most the whole; zero if `whole` is zero.
    pub fn ratio(part: u64, whole: u64) -> Self {
        if whole == 0 {
            return Self::NONE;
        }
        let millionths = u128::from(part.min(whole)) * u128::from(Self::WHOLE.0) / u128::from(whole);
        Self(u32::try_from(millionths).expect("a share is at most the whole"))
    }

    pub fn as_f64(self) -> f64 {
        f64::from(self.0) / f64::from(Self::WHOLE.0)
    }
}

/// CPU, memory and GPUs of a node or member.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Resources {
    #[serde(default, skip_serializing_if = "zero_cpu")]
    pub cpu: Cpu,
    #[serde(default, skip_serializing_if = "zero_memory")]
    pub memory: Memory,
    #[serde(default, skip_serializing_if = "zero_gpus")]
    pub gpus: Gpus,
}

fn zero_cpu(amount: &Cpu) -> bool {
    amount.is_zero()
}
fn zero_memory(amount: &Memory) -> bool {
    amount.is_zero()
}
fn zero_gpus(amount: &Gpus) -> bool {
    amount.is_zero()
}

impl Resources {
    pub const NONE: Self = Self { cpu: Cpu::ZERO, memory: Memory::ZERO, gpus: Gpus::ZERO };
    /// A quota that bounds no resource.
    pub const UNBOUNDED: Self = Self { cpu: Cpu(u64::MAX), memory: Memory(u64::MAX), gpus: Gpus(u64::MAX) };

    pub const fn times(self, count: u64) -> Self {
        Self { cpu: self.cpu.times(count), memory: self.memory.times(count), gpus: self.gpus.times(count) }
    }

    pub fn fits_in(self, room: Self) -> bool {
        self.cpu <= room.cpu && self.memory <= room.memory && self.gpus <= room.gpus
    }

    /// Number of members of this size that fit into `room`; `u32::MAX` for a member without resources.
    pub fn count_in(self, room: Self) -> u32 {
        let per = |room: u64, each: u64| room.checked_div(each).unwrap_or(u64::MAX);
        let count = per(room.gpus.0, self.gpus.0)
            .min(per(room.cpu.0, self.cpu.0))
            .min(per(room.memory.0, self.memory.0));
        u32::try_from(count).unwrap_or(u32::MAX)
    }

    /// Minimum of each resource.
    pub fn common(self, other: Self) -> Self {
        Self {
            cpu: self.cpu.min(other.cpu),
            memory: self.memory.min(other.memory),
            gpus: self.gpus.min(other.gpus),
        }
    }

    /// Maximum of each resource.
    pub fn either(self, other: Self) -> Self {
        Self {
            cpu: self.cpu.max(other.cpu),
            memory: self.memory.max(other.memory),
            gpus: self.gpus.max(other.gpus),
        }
    }

    /// Number of members of this size that fit on an empty node, each with its GPUs on devices: `count_in` would
    /// combine three thirds of two devices.
    pub fn count_on(self, node: Self) -> u32 {
        let on_devices = match self.gpus {
            share if share.is_share() => (Gpus::ONE.0 / share.0).saturating_mul(node.gpus.devices()),
            whole if whole.is_whole() => u64::MAX,
            _ => 0,
        };
        self.count_in(node).min(u32::try_from(on_devices).unwrap_or(u32::MAX))
    }

    pub fn checked_sub(self, other: Self) -> Option<Self> {
        Some(Self {
            cpu: self.cpu.checked_sub(other.cpu)?,
            memory: self.memory.checked_sub(other.memory)?,
            gpus: self.gpus.checked_sub(other.gpus)?,
        })
    }
}

impl Add for Resources {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self { cpu: self.cpu + other.cpu, memory: self.memory + other.memory, gpus: self.gpus + other.gpus }
    }
}

impl Sub for Resources {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self { cpu: self.cpu - other.cpu, memory: self.memory - other.memory, gpus: self.gpus - other.gpus }
    }
}

impl Sum for Resources {
    fn sum<I: Iterator<Item = Self>>(items: I) -> Self {
        items.fold(Self::NONE, Add::add)
    }
}

/// `8 GPUs, 4 CPUs, 16Gi`: the nonzero resources, GPUs first.
impl fmt::Display for Resources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::new();
        if !self.gpus.is_zero() {
            parts.push(format!("{} {}", self.gpus, if self.gpus.0 == 1000 { "GPU" } else { "GPUs" }));
        }
        if !self.cpu.is_zero() {
            parts.push(format!("{} {}", self.cpu, if self.cpu.0 == 1000 { "CPU" } else { "CPUs" }));
        }
        if !self.memory.is_zero() {
            parts.push(self.memory.to_string());
        }
        if parts.is_empty() {
            parts.push("nothing".into());
        }
        f.write_str(&parts.join(", "))
    }
}

fn thousandths(value: u64, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match value % 1000 {
        0 => write!(f, "{}", value / 1000),
        rest => write!(f, "{}.{}", value / 1000, format!("{rest:03}").trim_end_matches('0')),
    }
}

impl fmt::Display for Cpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        thousandths(self.0, f)
    }
}

impl fmt::Display for Gpus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        thousandths(self.0, f)
    }
}

impl fmt::Display for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [(&str, u32); 5] = [("Pi", 50), ("Ti", 40), ("Gi", 30), ("Mi", 20), ("Ki", 10)];
        match UNITS.iter().find(|(_, bits)| self.0 >> bits > 0 && self.0.trailing_zeros() >= *bits) {
            Some((unit, bits)) => write!(f, "{}{unit}", self.0 >> bits),
            None => write!(f, "{}", self.0),
        }
    }
}

impl fmt::Display for Bandwidth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [(&str, u64); 4] =
            [("Tbps", 1_000_000_000_000), ("Gbps", 1_000_000_000), ("Mbps", 1_000_000), ("kbps", 1000)];
        match UNITS.iter().find(|(_, size)| self.0 >= *size && self.0.is_multiple_of(*size)) {
            Some((unit, size)) => write!(f, "{}{unit}", self.0 / size),
            None => write!(f, "{}bps", self.0),
        }
    }
}

/// The two largest nonzero units: `2d 3h`, `1m 30s`, `210ms`.
impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [(&str, u64); 7] = [
            ("d", 86_400_000_000_000),
            ("h", 3_600_000_000_000),
            ("m", 60_000_000_000),
            ("s", 1_000_000_000),
            ("ms", 1_000_000),
            ("µs", 1000),
            ("ns", 1),
        ];
        let Some(largest) = UNITS.iter().position(|(_, size)| self.0 >= *size) else {
            return f.write_str("0s");
        };
        let (unit, size) = UNITS[largest];
        write!(f, "{}{unit}", self.0 / size)?;
        if let Some((next, next_size)) = UNITS.get(largest + 1) {
            let rest = self.0 % size / next_size;
            if rest > 0 {
                write!(f, " {rest}{next}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_members_fit_as_the_scarcest_resource_allows() {
        let room = Resources { cpu: Cpu::cores(10), memory: Memory::gib(64), gpus: Gpus::whole(8) };
        let member = Resources { cpu: Cpu::cores(4), memory: Memory::gib(1), gpus: Gpus::whole(1) };
        assert_eq!(member.count_in(room), 2);
        assert_eq!(Resources::NONE.count_in(room), u32::MAX);
        assert_eq!(member.count_in(Resources::NONE), 0);
        let shares = |share| Resources { gpus: Gpus(share), ..Resources::NONE };
        assert_eq!((shares(600).count_in(room), shares(600).count_on(room)), (13, 8));
        assert_eq!((shares(250).count_on(room), shares(1500).count_on(room)), (32, 0));
    }

    #[test]
    fn amounts_are_displayed_in_their_largest_units() {
        let shown = [
            Duration::from_secs(90).to_string(),
            Duration::from_secs(3 * 86_400 + 7200).to_string(),
            Duration::ZERO.to_string(),
            Memory::gib(16).to_string(),
            Cpu(2500).to_string(),
            Bandwidth(150_000_000_000).to_string(),
            Resources { cpu: Cpu::cores(1), memory: Memory::gib(2), gpus: Gpus(500) }.to_string(),
        ];
        assert_eq!(shown, ["1m 30s", "3d 2h", "0s", "16Gi", "2.5", "150Gbps", "0.5 GPUs, 1 CPU, 2Gi"]);
    }
}
