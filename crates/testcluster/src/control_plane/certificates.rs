//! The control plane's own authority, and what it signs.

use std::fs;
use std::path::{Path, PathBuf};

use rcgen::{
    BasicConstraints, Certificate, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};

use crate::error::{Error, Result};

/// The names under which clients on loopback and inside a cluster know an API server.
const SERVER_NAMES: [&str; 4] = ["127.0.0.1", "localhost", "kubernetes.default", "kubernetes.default.svc"];

/// Whose certificate it is: a user, and the group it belongs to.
#[derive(Debug, Clone, Copy)]
pub(super) struct Identity {
    pub(super) file: &'static str,
    pub(super) user: &'static str,
    pub(super) group: Option<&'static str>,
}

pub(super) const ADMIN: Identity = Identity { file: "admin", user: "admin", group: Some("system:masters") };
pub(super) const CONTROLLER_MANAGER: Identity =
    Identity { file: "controller-manager", user: "system:kube-controller-manager", group: None };
pub(super) const SCHEDULER: Identity =
    Identity { file: "scheduler", user: "system:kube-scheduler", group: None };

/// Where the files lie. Every certificate `x.crt` has its key beside it in `x.key`.
#[derive(Debug, Clone)]
pub(super) struct Certificates {
    folder: PathBuf,
}

impl Certificates {
    /// Makes and writes all that a control plane needs.
    pub(super) fn create(folder: &Path) -> Result<Self> {
        let certificates = Self { folder: folder.to_owned() };
        let authority = certificates.authority()?;
        certificates.server(&authority)?;
        for identity in [ADMIN, CONTROLLER_MANAGER, SCHEDULER] {
            certificates.client(identity, &authority)?;
        }
        certificates.service_account_key()?;
        Ok(certificates)
    }

    pub(super) fn certificate(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.crt"))
    }

    pub(super) fn key(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.key"))
    }

    /// The public half of the key that signs the tokens of service accounts.
    pub(super) fn service_account_public_key(&self) -> PathBuf {
        self.folder.join("service-account.pub")
    }

    fn authority(&self) -> Result<Issuer<'static, KeyPair>> {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, "testcluster");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        let key = KeyPair::generate()?;
        self.save("ca", &params.self_signed(&key)?, &key)?;
        Ok(Issuer::new(params, key))
    }

    fn server(&self, authority: &Issuer<'static, KeyPair>) -> Result<()> {
        let mut params = CertificateParams::new(SERVER_NAMES.map(str::to_owned))?;
        params.distinguished_name.push(DnType::CommonName, "kube-apiserver");
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        self.sign("server", &params, authority)
    }

    fn client(&self, identity: Identity, authority: &Issuer<'static, KeyPair>) -> Result<()> {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, identity.user);
        if let Some(group) = identity.group {
            params.distinguished_name.push(DnType::OrganizationName, group);
        }
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        self.sign(identity.file, &params, authority)
    }

    fn sign(
        &self,
        name: &str,
        params: &CertificateParams,
        authority: &Issuer<'static, KeyPair>,
    ) -> Result<()> {
        let key = KeyPair::generate()?;
        self.save(name, &params.signed_by(&key, authority)?, &key)
    }

    fn save(&self, name: &str, certificate: &Certificate, key: &KeyPair) -> Result<()> {
        write(&self.certificate(name), &certificate.pem())?;
        write(&self.key(name), &key.serialize_pem())
    }

    fn service_account_key(&self) -> Result<()> {
        let key = KeyPair::generate()?;
        write(&self.key("service-account"), &key.serialize_pem())?;
        write(&self.service_account_public_key(), &key.public_key_pem())
    }
}

fn write(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text).map_err(|source| Error::File { path: path.to_owned(), source })
}
