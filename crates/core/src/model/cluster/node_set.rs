//! Set of nodes as a bit set.

use serde::{Deserialize, Serialize};

use crate::model::id::{Id, NodeId};

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct NodeSet {
    words: Vec<u64>,
}

impl NodeSet {
    pub fn contains(&self, node: NodeId) -> bool {
        self.words.get(node.index() / 64).is_some_and(|word| word >> (node.index() % 64) & 1 == 1)
    }

    pub fn insert(&mut self, node: NodeId) {
        let word = node.index() / 64;
        if word >= self.words.len() {
            self.words.resize(word + 1, 0);
        }
        self.words[word] |= 1 << (node.index() % 64);
    }

    pub fn remove(&mut self, node: NodeId) {
        if let Some(word) = self.words.get_mut(node.index() / 64) {
            *word &= !(1 << (node.index() % 64));
        }
    }
}

impl FromIterator<NodeId> for NodeSet {
    fn from_iter<A: IntoIterator<Item = NodeId>>(nodes: A) -> Self {
        let mut set = Self::default();
        nodes.into_iter().for_each(|node| set.insert(node));
        set
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_contains_inserted_nodes_until_they_are_removed() {
        let mut set: NodeSet = [NodeId(3), NodeId(64), NodeId(130)].into_iter().collect();
        set.remove(NodeId(64));
        set.remove(NodeId(1000));
        let has: Vec<u32> = (0..200).filter(|node| set.contains(NodeId(*node))).collect();
        assert_eq!(has, [3, 130]);
    }
}
