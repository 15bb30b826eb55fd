//! Dense ids, and vectors that only their own id can index.
//!
//! The input layer interns names; the core works with ids. Every comparison of equals ends in an id, so ids are
//! ordered: by arrival.

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Index, IndexMut};

use serde::{Deserialize, Serialize};

/// Index of one kind of object.
pub trait Id: Copy + Ord + fmt::Debug {
    fn from_index(index: usize) -> Self;
    fn index(self) -> usize;
}

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident $letter:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub u32);

        impl Id for $name {
            fn from_index(index: usize) -> Self {
                Self(u32::try_from(index).expect("fewer than 2^32 of a kind"))
            }
            fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($letter, "{}"), self.0)
            }
        }
    )*};
}

ids! {
    /// Job, numbered in the order of submission; never reused.
    JobId "j";
    NodeId "n";
    /// One direction of one cable.
    LinkId "l";
    QueueId "q";
    /// One domain at one level of the topology, such as a rack.
    DomainId "d";
    GpuTypeId "g";
    /// GPU of one node that members share.
    DeviceId "v";
    /// Interned shape of a member: jobs that ask for equal members have the same.
    ShapeId "s";
    /// Waiting jobs that are equal to the scheduler except for their position in the queue.
    ClassId "c";
    /// Integer resource of nodes other than CPU, memory and GPUs.
    CounterId "k";
    /// Set of nodes on which some members may run.
    NodeSetId "e";
    /// Partition of nodes into domains, independent of the topology.
    PartitionId "p";
    /// Group of members that are counted per domain of one partition.
    GroupId "u";
    /// Disruption budget: number of members that may be evicted together.
    BudgetId "b";
}

/// Vector that only `I` can index.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct IdVec<I, T> {
    items: Vec<T>,
    #[serde(skip)]
    id: PhantomData<fn(I) -> I>,
}

impl<I: Id, T> IdVec<I, T> {
    pub const fn new() -> Self {
        Self { items: Vec::new(), id: PhantomData }
    }

    /// Creates a vector with `len` copies of an item.
    pub fn filled(item: T, len: usize) -> Self
    where
        T: Clone,
    {
        Self { items: vec![item; len], id: PhantomData }
    }

    pub fn push(&mut self, item: T) -> I {
        let id = I::from_index(self.items.len());
        self.items.push(item);
        id
    }

    pub fn get(&self, id: I) -> Option<&T> {
        self.items.get(id.index())
    }

    pub fn get_mut(&mut self, id: I) -> Option<&mut T> {
        self.items.get_mut(id.index())
    }

    /// Replaces an item, or adds it if the id is the next; `None` for an id beyond that.
    pub fn put(&mut self, id: I, item: T) -> Option<()> {
        match self.items.len().cmp(&id.index()) {
            std::cmp::Ordering::Less => return None,
            std::cmp::Ordering::Equal => self.items.push(item),
            std::cmp::Ordering::Greater => self.items[id.index()] = item,
        }
        Some(())
    }

    /// Id of the next `push`.
    pub fn next_id(&self) -> I {
        I::from_index(self.items.len())
    }

    pub fn len(&self) -> usize {
        self.items.len()
    }

    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    pub fn iter(&self) -> impl ExactSizeIterator<Item = (I, &T)> + DoubleEndedIterator {
        self.items.iter().enumerate().map(|(index, item)| (I::from_index(index), item))
    }

    pub fn iter_mut(&mut self) -> impl ExactSizeIterator<Item = (I, &mut T)> {
        self.items.iter_mut().enumerate().map(|(index, item)| (I::from_index(index), item))
    }

    pub fn ids(&self) -> impl ExactSizeIterator<Item = I> + DoubleEndedIterator + use<I, T> {
        (0..self.items.len()).map(I::from_index)
    }

    pub fn values(&self) -> std::slice::Iter<'_, T> {
        self.items.iter()
    }
}

impl<I: Id, T> Default for IdVec<I, T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<I: Id, T: fmt::Debug> fmt::Debug for IdVec<I, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl<I: Id, T> FromIterator<T> for IdVec<I, T> {
    fn from_iter<A: IntoIterator<Item = T>>(items: A) -> Self {
        Self { items: items.into_iter().collect(), id: PhantomData }
    }
}

impl<I: Id, T> Index<I> for IdVec<I, T> {
    type Output = T;
    fn index(&self, id: I) -> &T {
        &self.items[id.index()]
    }
}

impl<I: Id, T> IndexMut<I> for IdVec<I, T> {
    fn index_mut(&mut self, id: I) -> &mut T {
        &mut self.items[id.index()]
    }
}

/// Items that are added and removed under ids that are never reused: a window from the oldest live item to the
/// newest. A removed item costs one pointer until all older items are removed too.
#[derive(Clone, Serialize, Deserialize)]
pub struct Window<I, T> {
    first: usize,
    items: std::collections::VecDeque<Option<Box<T>>>,
    live: usize,
    #[serde(skip)]
    id: PhantomData<fn(I) -> I>,
}

impl<I: Id, T> Window<I, T> {
    pub const fn new() -> Self {
        Self { first: 0, items: std::collections::VecDeque::new(), live: 0, id: PhantomData }
    }

    /// Id of the next `push`.
    pub fn next_id(&self) -> I {
        I::from_index(self.first + self.items.len())
    }

    pub fn push(&mut self, item: T) -> I {
        let id = self.next_id();
        self.items.push_back(Some(Box::new(item)));
        self.live += 1;
        id
    }

    pub fn get(&self, id: I) -> Option<&T> {
        self.items.get(id.index().checked_sub(self.first)?)?.as_deref()
    }

    pub fn get_mut(&mut self, id: I) -> Option<&mut T> {
        self.items.get_mut(id.index().checked_sub(self.first)?)?.as_deref_mut()
    }

    pub fn remove(&mut self, id: I) -> Option<T> {
        let item = self.items.get_mut(id.index().checked_sub(self.first)?)?.take()?;
        self.live -= 1;
        while matches!(self.items.front(), Some(None)) {
            self.items.pop_front();
            self.first += 1;
        }
        Some(*item)
    }

    pub fn len(&self) -> usize {
        self.live
    }

    pub fn is_empty(&self) -> bool {
        self.live == 0
    }

    pub fn iter(&self) -> impl Iterator<Item = (I, &T)> {
        let first = self.first;
        self.items
            .iter()
            .enumerate()
            .filter_map(move |(offset, item)| Some((I::from_index(first + offset), item.as_deref()?)))
    }

    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.items.iter_mut().filter_map(|item| item.as_deref_mut())
    }
}

impl<I: Id, T> Default for Window<I, T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<I: Id, T: fmt::Debug> fmt::Debug for Window<I, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl<I: Id, T> Index<I> for Window<I, T> {
    type Output = T;
    fn index(&self, id: I) -> &T {
        self.get(id).expect("the id of something that is still here")
    }
}

impl<I: Id, T> IndexMut<I> for Window<I, T> {
    fn index_mut(&mut self, id: I) -> &mut T {
        self.get_mut(id).expect("the id of something that is still here")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_frees_removed_items_and_never_reuses_an_id() {
        let mut window: Window<JobId, &str> = Window::new();
        let (a, b, c) = (window.push("a"), window.push("b"), window.push("c"));
        assert_eq!(window.remove(b), Some("b"));
        assert_eq!(window.items.len(), 3, "b's place stays while a is here");
        assert_eq!(window.remove(a), Some("a"));
        assert_eq!(window.items.len(), 1, "both places are given back");
        assert_eq!((window.get(a), window.get(c), window.len()), (None, Some(&"c"), 1));
        assert_eq!(window.push("d"), JobId(3));
    }
}
