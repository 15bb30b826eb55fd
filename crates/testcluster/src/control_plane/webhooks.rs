//! Programs on loopback that the API server asks before it takes something in.

use std::fs;
use std::path::Path;

use k8s_openapi::ByteString;
use kube::ResourceExt;
use kube::api::DynamicObject;
use serde_json::{Value, json};

use super::ControlPlane;
use super::apply::{apply, documents, read};
use crate::error::{Error, Result};

impl ControlPlane {
    /// A certificate for loopback and its key, as `tls.crt` and `tls.key`. It is the API server's own.
    pub(super) fn write_certificate(&self, folder: &Path) -> Result<()> {
        let failed = |source| Error::File { path: folder.to_owned(), source };
        fs::create_dir_all(folder).map_err(failed)?;
        for (from, to) in [("server.crt", "tls.crt"), ("server.key", "tls.key")] {
            fs::copy(self.folder().join(from), folder.join(to)).map_err(failed)?;
        }
        Ok(())
    }

    /// Webhooks as the file of a program says, except that it listens on loopback. Those that look at every pod of the
    /// cluster are left out.
    pub(super) async fn apply_webhooks(&self, path: &Path, program: &str, port: u16) -> Result<()> {
        let authority = ByteString(read(&self.folder().join("ca.crt"))?.into_bytes());
        let client = self.client().await?;
        for mut configuration in documents(&read(path)?)? {
            configuration.metadata.name = Some(format!("{program}-{}", configuration.name_any()));
            redirect(&mut configuration, &json!(authority), port);
            apply(&client, &configuration).await?;
        }
        Ok(())
    }
}

fn redirect(configuration: &mut DynamicObject, authority: &Value, port: u16) {
    let Some(webhooks) = configuration.data["webhooks"].as_array_mut() else { return };
    webhooks.retain(|webhook| !webhook["rules"].to_string().contains("\"pods\""));
    for webhook in webhooks {
        let path = webhook["clientConfig"]["service"]["path"].as_str().unwrap_or_default();
        let url = format!("https://127.0.0.1:{port}{path}");
        webhook["clientConfig"] = json!({ "url": url, "caBundle": authority });
    }
}
