//! Models by name.

use std::sync::Arc;

use metronome_core::model::cluster::Cluster;
use serde_saphyr::Spanned;

use crate::model::{self, Model};
use crate::near::{listed, meant_or_known};
use crate::scenario::documents::ModelsShape;
use crate::scenario::error::{Problem, quoted};
use crate::scenario::values::{Placed, Text};

/// The model that a text names, on a cluster that can carry its traffic.
pub(super) fn model(text: &Text, cluster: &Cluster) -> Result<Arc<Model>, Problem> {
    let model = find(text)?;
    check_links(text, cluster)?;
    Ok(model)
}

pub(super) fn models(written: &Spanned<ModelsShape>, cluster: &Cluster) -> Result<Vec<Arc<Model>>, Problem> {
    let models = match &written.value {
        ModelsShape::Word(word) if word == "all" => model::all().to_vec(),
        ModelsShape::Word(word) => {
            let message = format!("`models` is `all` or a list, not {}", quoted(word));
            return Err(written.problem(message).with_hint("write models: all, or models: [resnet50/512]"));
        }
        ModelsShape::List(names) => listed_models(names)?,
    };
    if models.is_empty() {
        return Err(written.problem("the list of models is empty"));
    }
    check_links(written, cluster)?;
    Ok(models)
}

fn listed_models(names: &[Text]) -> Result<Vec<Arc<Model>>, Problem> {
    let mut models: Vec<Arc<Model>> = Vec::new();
    for name in names {
        let model = find(name)?;
        if models.contains(&model) {
            return Err(name.problem(format!("model {} is given twice", quoted(&name.value))));
        }
        models.push(model);
    }
    Ok(models)
}

fn find(text: &Text) -> Result<Arc<Model>, Problem> {
    model::named(&text.value).ok_or_else(|| {
        text.problem(format!("there is no model {}", quoted(&text.value))).with_hint(near(&text.value))
    })
}

/// A name without its batch size, or with one that was not measured, has near names of its own.
pub(super) fn near(name: &str) -> String {
    let known = || model::all().iter().map(|model| model.name.as_str());
    let family = name.split('/').next().unwrap_or_default();
    let sizes = known().filter(|known| known.strip_prefix(family).is_some_and(|rest| rest.starts_with('/')));
    match listed(sizes) {
        sizes if sizes.is_empty() => meant_or_known(name, known().collect::<Vec<_>>()),
        sizes => format!("known are {sizes}"),
    }
}

pub(super) fn check_links(place: &impl Placed, cluster: &Cluster) -> Result<(), Problem> {
    if !cluster.fabric.is_empty() {
        return Ok(());
    }
    Err(place
        .problem("a model sends its gradients over links, and the Cluster has none")
        .with_hint("give the Cluster a rate for each level: links: {node: 100Gbps}"))
}
