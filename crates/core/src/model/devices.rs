//! GPUs of one node, device by device.
//!
//! A member that asks for less than one GPU has its share on a single device; a member that asks for whole GPUs has
//! devices of its own. Two free halves of two devices are therefore not a GPU. Only shared devices are listed: a node
//! with whole-GPU members only is one number.

use std::borrow::Cow;

use crate::model::id::{DeviceId, Id};
use crate::model::units::Gpus;

/// Allocation of one shared device.
pub(crate) type Load = (DeviceId, Gpus);

/// Devices of a node and their allocations.
#[derive(Clone, Debug)]
pub(crate) struct Devices<'a> {
    capacity: Gpus,
    /// Allocation of all devices together.
    taken: Gpus,
    /// Allocations of shared devices, in order of device.
    shared: Cow<'a, [Load]>,
}

impl<'a> Devices<'a> {
    pub(crate) fn new(capacity: Gpus, taken: Gpus, shared: &'a [Load]) -> Self {
        Self { capacity, taken, shared: Cow::Borrowed(shared) }
    }

    /// Devices of a node without allocations.
    pub(crate) fn unused(capacity: Gpus) -> Self {
        Self::new(capacity, Gpus::ZERO, &[])
    }

    /// Adds further allocations.
    pub(crate) fn beside(self, taken: Gpus, shared: &[Load]) -> Self {
        let mut all = self.shared;
        if !shared.is_empty() {
            let loads = all.to_mut();
            shared.iter().for_each(|(device, taken)| add(loads, *device, *taken));
        }
        Self { taken: self.taken + taken, shared: all, ..self }
    }

    /// Adds members of one size, each on the device that `best_for` selects; `None` if they do not fit.
    pub(crate) fn with(mut self, each: Gpus, members: u32) -> Option<Self> {
        if !each.is_share() {
            let taken = each.times(u64::from(members));
            return (self.fit(each) >= u64::from(members)).then(|| self.beside(taken, &[]));
        }
        for _ in 0..members {
            let device = self.best_for(each)?;
            self = self.beside(each, &[(device, each)]);
        }
        Some(self)
    }

    /// Free part of each shared device.
    pub(crate) fn pieces(&self) -> impl Iterator<Item = Gpus> {
        self.shared.iter().map(|(_, taken)| Gpus::ONE - *taken)
    }

    /// Number of empty devices; `None` where more devices are in use than exist.
    pub(crate) fn empty(&self) -> Option<u64> {
        let shared: Gpus = self.shared.iter().map(|(_, taken)| *taken).sum();
        let whole = (self.taken - shared).0.div_ceil(Gpus::ONE.0);
        self.capacity.devices().checked_sub(whole + self.shared.len() as u64)
    }

    /// Number of members of one size that fit, each on whole devices or with its share on a single device.
    pub(crate) fn fit(&self, each: Gpus) -> u64 {
        if each.is_zero() {
            return u64::MAX;
        }
        let Some(empty) = self.empty() else { return 0 };
        if each.is_whole() {
            return empty / each.devices();
        }
        if !each.is_share() {
            return 0;
        }
        let beside: u64 = self.pieces().map(|left| left.0 / each.0).sum();
        beside + empty * (Gpus::ONE.0 / each.0)
    }

    /// Device for a share: the fullest with enough capacity (best fit), otherwise an empty one.
    pub(crate) fn best_for(&self, each: Gpus) -> Option<DeviceId> {
        let empty = self.empty()?;
        let with_capacity = self.shared.iter().filter(|(_, taken)| Gpus::ONE - *taken >= each);
        let fullest = with_capacity.min_by_key(|(device, taken)| (Gpus::ONE - *taken, *device));
        fullest.map(|(device, _)| *device).or_else(|| (empty > 0).then(|| self.first_unused_index()))
    }

    /// Smallest index that no shared device has. Below the number of devices, because one of them is empty.
    fn first_unused_index(&self) -> DeviceId {
        let gap = self.shared.iter().zip(0..).position(|((device, _), number)| device.index() != number);
        DeviceId::from_index(gap.unwrap_or(self.shared.len()))
    }

    /// Whether more devices are in use than exist, or a device is allocated beyond one GPU.
    pub(crate) fn are_overcommitted(&self) -> bool {
        let matters = !self.shared.is_empty();
        matters && (self.empty().is_none() || self.shared.iter().any(|(_, taken)| *taken > Gpus::ONE))
    }

    /// Whether less is free than an allocation needs: `taken` in total, of which `shares` on shared devices.
    pub(crate) fn lack(&self, taken: Gpus, shares: impl Iterator<Item = Load> + Clone) -> bool {
        let shared: Gpus = shares.clone().map(|(_, share)| share).sum();
        let load = |device| self.shared.binary_search_by_key(&device, |(other, _)| *other);
        let is_full = |(device, share): Load| match load(device) {
            Ok(at) => self.shared[at].1 + share > Gpus::ONE,
            Err(_) => share > Gpus::ONE,
        };
        let opened = shares.clone().filter(|(device, _)| load(*device).is_err()).count() as u64;
        let whole = (taken - shared).0.div_ceil(Gpus::ONE.0);
        let mut shares = shares;
        shares.any(is_full) || self.empty().is_none_or(|empty| empty < opened + whole)
    }
}

/// Adds to the allocation of a device.
pub(crate) fn add(loads: &mut Vec<Load>, device: DeviceId, taken: Gpus) {
    match loads.binary_search_by_key(&device, |(other, _)| *other) {
        Ok(at) => loads[at].1 += taken,
        Err(at) => loads.insert(at, (device, taken)),
    }
}

/// Subtracts from the allocation of a device; a device without allocation is no longer shared.
pub(crate) fn remove(loads: &mut Vec<Load>, device: DeviceId, taken: Gpus) {
    if let Ok(at) = loads.binary_search_by_key(&device, |(other, _)| *other) {
        loads[at].1 -= taken;
        if loads[at].1.is_zero() {
            loads.remove(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loads(loads: &[(u32, u64)]) -> Vec<Load> {
        loads.iter().map(|(device, taken)| (DeviceId(*device), Gpus(*taken))).collect()
    }

    #[test]
    fn two_halves_of_two_devices_are_no_gpu() {
        let shared = loads(&[(0, 500), (1, 500)]);
        let devices = Devices::new(Gpus::whole(2), Gpus(1000), &shared);
        assert_eq!((devices.fit(Gpus::ONE), devices.fit(Gpus(500)), devices.fit(Gpus(600))), (0, 2, 0));
        assert_eq!(devices.fit(Gpus::ZERO), u64::MAX);
    }

    #[test]
    fn a_share_goes_to_the_fullest_device_that_has_room() {
        let shared = loads(&[(0, 300), (2, 600), (3, 900)]);
        let devices = Devices::new(Gpus::whole(5), Gpus(1800), &shared);
        assert_eq!(devices.best_for(Gpus(400)), Some(DeviceId(2)));
        assert_eq!(devices.best_for(Gpus(700)), Some(DeviceId(0)));
        assert_eq!(devices.best_for(Gpus(800)), Some(DeviceId(1)), "the least number of an empty one");
        assert_eq!(devices.fit(Gpus(400)), 1 + 1 + 2 * 2);
    }

    #[test]
    fn whole_gpus_and_shares_divide_the_devices_among_them() {
        let shared = loads(&[(0, 100)]);
        let devices = Devices::new(Gpus::whole(4), Gpus(2100), &shared);
        assert_eq!(devices.empty(), Some(1));
        let with_all = devices.with(Gpus::ONE, 1).unwrap();
        assert_eq!((with_all.empty(), with_all.fit(Gpus(900))), (Some(0), 1));
        assert!(with_all.with(Gpus::ONE, 1).is_none());
    }

    #[test]
    fn a_member_with_one_and_a_half_gpus_fits_on_no_devices() {
        assert_eq!(Devices::unused(Gpus::whole(8)).fit(Gpus(1500)), 0);
    }

    #[test]
    fn a_sum_that_fits_on_no_single_device_is_lacking() {
        let shared = loads(&[(0, 500), (1, 500)]);
        let devices = || Devices::new(Gpus::whole(3), Gpus(1000), &shared);
        let lacks = |taken, shares: &[(u32, u64)]| devices().lack(Gpus(taken), loads(shares).into_iter());
        assert!(!lacks(1000, &[]) && lacks(2000, &[]));
        assert!(!lacks(500, &[(0, 500)]) && lacks(600, &[(0, 600)]));
        assert!(!lacks(600, &[(2, 600)]) && lacks(200, &[(2, 100), (3, 100)]), "there is no fourth device");
        assert!(lacks(1600, &[(2, 600)]));
    }

    #[test]
    fn nothing_fits_where_more_devices_are_in_use_than_there_are() {
        let shared = loads(&[(0, 100), (1, 100), (2, 100)]);
        let devices = Devices::new(Gpus::whole(2), Gpus(300), &shared);
        assert_eq!((devices.empty(), devices.fit(Gpus(100))), (None, 0));
        assert!(devices.are_overcommitted());
    }
}
