//! Import cycles between modules of a crate, found by text.
//!
//! An import is a path that begins with `crate`, `super` or `self`, in a `use` or in the middle of code. It leads from the
//! module in which it stands to the module that defines the item; names that a module re-exports lead to where they come
//! from. Code of tests imports what it likes.
//!
//! **Rule.** Of an import, only the two modules count that are siblings: those below the deepest module that contains both
//! ends. `decide/size/grow.rs` that uses `crate::decide::place::near` makes `decide::size` depend on `decide::place`, and one
//! that uses `crate::model::id` makes `decide` depend on `model`. Siblings must not depend on each other in a circle. A
//! module may use its children, and children the items that their parent defines: these two are one unit, whose children are
//! its parts.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt::Write;

use super::scan::without_comments_and_strings;
use super::uses::{Found, imports_in};

/// A module's path below the root of its crate.
pub(super) type Module = Vec<String>;

/// A source file: its path below `src`, with slashes, and its text.
pub(super) struct Source<'a> {
    pub(super) path: &'a str,
    pub(super) text: &'a str,
}

/// A dependency between siblings that stays for now, with its reason.
pub(super) struct Known {
    pub(super) from: &'static str,
    pub(super) to: &'static str,
    pub(super) why: &'static str,
}

/// Where a module first imports from another.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    file: String,
    line: usize,
    names: String,
}

/// For each module with children: which child imports from which, and where.
type Siblings = BTreeMap<Module, BTreeMap<String, BTreeMap<String, Place>>>;

/// One text for each group of siblings that depend on each other in a circle, and for each known dependency that is gone or
/// closes no circle any more.
pub(super) fn cycles(sources: &[Source<'_>], known: &[Known]) -> Vec<String> {
    let mut siblings = dependencies(sources);
    let are_there: Vec<bool> = known.iter().map(|known| known.remove_from(&mut siblings)).collect();
    let is_needed = |(known, is_there): &(&Known, bool)| *is_there && known.closes_a_circle_in(&siblings);
    let needless = known.iter().zip(are_there).filter(|known| !is_needed(known));
    let mut breaches: Vec<String> = needless.map(|(known, _)| known.is_needless()).collect();
    for (parent, graph) in &siblings {
        breaches.extend(circles(graph).into_iter().map(|circle| described(parent, graph, &circle)));
    }
    breaches
}

impl Known {
    /// Removes the dependency; false if there is none.
    fn remove_from(&self, siblings: &mut Siblings) -> bool {
        let ((parent, from), (_, to)) = (split(self.from), split(self.to));
        let targets = siblings.get_mut(&parent).and_then(|graph| graph.get_mut(&from));
        targets.is_some_and(|targets| targets.remove(&to).is_some())
    }

    /// Whether the other dependencies lead back from its end to its beginning.
    fn closes_a_circle_in(&self, siblings: &Siblings) -> bool {
        let ((parent, from), (_, to)) = (split(self.from), split(self.to));
        siblings.get(&parent).is_some_and(|graph| way(graph, &to, &from).is_some())
    }

    fn is_needless(&self) -> String {
        let Self { from, to, why } = self;
        format!("an import from `{to}` in `{from}` closes no cycle ({why}): delete it from the fence's list")
    }
}

/// The module's parent and its own name.
fn split(path: &str) -> (Module, String) {
    let mut module: Module = path.split("::").map(str::to_owned).collect();
    let name = module.pop().unwrap_or_default();
    (module, name)
}

fn dependencies(sources: &[Source<'_>]) -> Siblings {
    let mut found = BTreeMap::new();
    for Source { path, text } in sources {
        if let Some(module) = module_of(path) {
            for (module, imports) in imports_in(&without_comments_and_strings(text), &module) {
                found.insert(module, (*path, imports));
            }
        }
    }
    let modules: BTreeSet<Module> = found.keys().cloned().collect();
    let bound =
        found.iter().map(|(module, (_, imports))| (module.clone(), bindings(module, imports, &modules)));
    let resolver = Resolver { modules: &modules, bindings: bound.collect() };
    let mut siblings = Siblings::new();
    for (module, (file, imports)) in &found {
        for import in imports {
            let place = Place { file: (*file).to_owned(), line: import.line, names: import.path.join("::") };
            for target in resolver.targets(module, import) {
                note(&mut siblings, module, &target, &place);
            }
        }
    }
    siblings
}

/// The module that a file is; none for tests.
fn module_of(path: &str) -> Option<Module> {
    let mut module: Module = path.strip_suffix(".rs")?.split('/').map(str::to_owned).collect();
    if module.last().is_some_and(|last| last == "lib" || last == "mod") {
        module.pop();
    }
    (!module.iter().any(|name| name == "tests")).then_some(module)
}

/// The names that a module imports, each with its path from the root.
fn bindings(module: &Module, imports: &[Found], modules: &BTreeSet<Module>) -> BTreeMap<String, Module> {
    let named = imports
        .iter()
        .filter_map(|import| Some((import.binds.clone()?, absolute(module, &import.path, modules)?)));
    named.collect()
}

/// A path from the root; none where it leads to another crate.
fn absolute(module: &Module, path: &[String], modules: &BTreeSet<Module>) -> Option<Module> {
    let (first, mut rest) = path.split_first()?;
    let mut base = module.clone();
    match first.as_str() {
        "crate" => base.clear(),
        "self" => {}
        "super" => {
            base.pop();
        }
        child => {
            base.push(child.to_owned());
            if !modules.contains(&base) {
                return None;
            }
        }
    }
    while let Some((_, after)) = rest.split_first().filter(|(next, _)| *next == "super") {
        base.pop();
        rest = after;
    }
    base.extend_from_slice(rest);
    Some(base)
}

struct Resolver<'a> {
    modules: &'a BTreeSet<Module>,
    bindings: BTreeMap<Module, BTreeMap<String, Module>>,
}

impl Resolver<'_> {
    /// The modules that an import needs: the one that it names, and where that has the item from.
    fn targets(&self, module: &Module, import: &Found) -> BTreeSet<Module> {
        let mut targets = BTreeSet::new();
        let mut next = absolute(module, &import.path, self.modules);
        while let Some(path) = next {
            let depth = (0..=path.len()).rev().find(|depth| self.modules.contains(&path[..*depth]));
            let Some(depth) = depth else { break };
            let (named, rest) = path.split_at(depth);
            if !targets.insert(named.to_vec()) {
                break;
            }
            // A name that the module itself imports comes from elsewhere.
            let imported = rest.first().and_then(|name| self.bindings.get(named)?.get(name));
            next = imported.map(|path| [path, &rest[1..]].concat());
        }
        targets
    }
}

/// Takes note that the siblings above two modules depend on each other; nothing where one module contains the other.
fn note(siblings: &mut Siblings, from: &Module, to: &Module, place: &Place) {
    let shared = from.iter().zip(to).take_while(|(from, to)| from == to).count();
    let (Some(one), Some(other)) = (from.get(shared), to.get(shared)) else { return };
    let graph = siblings.entry(from[..shared].to_vec()).or_default();
    let first = graph.entry(one.clone()).or_default().entry(other.clone()).or_insert_with(|| place.clone());
    if place < first {
        first.clone_from(place);
    }
}

type Graph = BTreeMap<String, BTreeMap<String, Place>>;

/// The shortest circle of each group of modules of which every one leads to every other.
fn circles(graph: &Graph) -> Vec<Vec<String>> {
    let mut in_groups: BTreeSet<String> = BTreeSet::new();
    let mut circles = Vec::new();
    for start in graph.keys() {
        if in_groups.contains(start) {
            continue;
        }
        let group: Vec<&String> = graph
            .keys()
            .filter(|other| way(graph, start, other).is_some() && way(graph, other, start).is_some())
            .collect();
        in_groups.extend(group.iter().map(|name| (*name).clone()));
        let ways = group.iter().filter_map(|name| way(graph, name, name));
        circles.extend(ways.min_by_key(Vec::len));
    }
    circles
}

/// The shortest way of at least one step from one module to another, without its end.
fn way(graph: &Graph, from: &str, to: &str) -> Option<Vec<String>> {
    let mut seen: BTreeSet<&str> = BTreeSet::new();
    let mut ahead = VecDeque::from([vec![from]]);
    while let Some(way) = ahead.pop_front() {
        for next in graph.get(*way.last()?).into_iter().flat_map(BTreeMap::keys) {
            if next == to {
                return Some(way.into_iter().map(str::to_owned).collect());
            }
            if seen.insert(next) {
                ahead.push_back(way.iter().copied().chain([next.as_str()]).collect());
            }
        }
    }
    None
}

fn described(parent: &Module, graph: &Graph, circle: &[String]) -> String {
    let within = if parent.is_empty() { String::new() } else { format!(" in `{}`", parent.join("::")) };
    let mut text = format!("import cycle{within}: {} → {}", circle.join(" → "), circle[0]);
    for (at, from) in circle.iter().enumerate() {
        let to = &circle[(at + 1) % circle.len()];
        let Place { file, line, names } = &graph[from][to];
        let _ = write!(text, "\n    src/{file}:{line}: `{from}` uses `{names}` of `{to}`");
    }
    text
}
