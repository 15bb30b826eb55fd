//! How nodes are divided into domains, for rules about near and far.

use std::collections::BTreeSet;

use crate::objects::Node;
use crate::rules::place::NodeRules;
use crate::rules::selector::labels_of;
use crate::rules::tolerations::Tolerations;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Division {
    /// All nodes are one domain.
    Whole,
    /// By the value of a label.
    Label(String),
    /// By the value of a label, among the nodes that count for a pod's spread.
    Counted {
        key: String,
        /// They have all of these labels,
        keys: BTreeSet<String>,
        /// satisfy these rules, where they are honoured,
        nodes: Option<NodeRules>,
        /// and have no taint that these do not tolerate, where taints are honoured.
        tolerations: Option<Tolerations>,
    },
}

impl Division {
    /// The domain a node lies in, by name; none, if it does not count.
    pub fn domain<'a>(&self, node: &'a Node) -> Option<&'a str> {
        let labels = labels_of(&node.metadata);
        match self {
            Self::Whole => Some(""),
            Self::Label(key) => labels.get(key).map(String::as_str),
            Self::Counted { key, keys, nodes, tolerations } => {
                let counts = keys.iter().all(|key| labels.contains_key(key))
                    && nodes.as_ref().is_none_or(|rules| rules.match_node(node))
                    && tolerations.as_ref().is_none_or(|tolerations| tolerations.tolerate_taints(node));
                labels.get(key).filter(|_| counts).map(String::as_str)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spread_counts_only_nodes_with_every_key_that_the_policies_include() {
        let node = |json| -> Node { serde_json::from_value(json).unwrap() };
        let keys = BTreeSet::from(["rack".to_owned(), "zone".to_owned()]);
        let by_zone = |tolerations| Division::Counted {
            key: "zone".into(),
            keys: keys.clone(),
            nodes: None,
            tolerations,
        };
        let bare = node(serde_json::json!({"metadata": {"labels": {"zone": "z"}}}));
        let tainted = node(serde_json::json!({
            "metadata": {"labels": {"zone": "z", "rack": "r"}},
            "spec": {"taints": [{"key": "t", "effect": "NoSchedule"}]},
        }));
        assert_eq!(by_zone(None).domain(&bare), None);
        assert_eq!(by_zone(None).domain(&tainted), Some("z"));
        assert_eq!(by_zone(Some(Tolerations::default())).domain(&tainted), None);
        assert_eq!(Division::Label("rack".into()).domain(&tainted), Some("r"));
        assert_eq!(Division::Whole.domain(&bare), Some(""));
    }
}
