//! Files of certificates and keys that are of no use: each with what to do.

use std::path::{Path, PathBuf};

use super::{acceptor, connector};
use crate::config::{Roots, Tls};

struct Files {
    folder: tempfile::TempDir,
}

impl Files {
    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    }
}

fn pair() -> (String, String) {
    let made = rcgen::generate_simple_self_signed(vec!["orders.test".to_owned()]).unwrap();
    (made.cert.pem(), made.signing_key.serialize_pem())
}

#[track_caller]
fn check(certificate: &Path, key: &Path, expected: &str) {
    let tls = Tls { certificate: certificate.to_owned(), key: key.to_owned() };
    let found = acceptor(&tls).err().map(|error| error.to_string()).unwrap_or_default();
    assert!(found.contains(expected), "{expected:?} in {found:?}");
}

#[test]
fn what_is_wrong_with_files() {
    let files = Files { folder: tempfile::tempdir().unwrap() };
    let ((certificate, key), (other, other_key)) = (pair(), pair());
    let good = files.write("good.pem", &certificate);
    let good_key = files.write("good.key", &key);
    let other_key = files.write("other.key", &other_key);
    let empty = files.write("empty.pem", "");
    let broken = files.write("broken.pem", "-----BEGIN CERTIFICATE-----\n!!\n-----END CERTIFICATE-----\n");
    let none = files.write("none.pem", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n");
    let sealed = key.replace("PRIVATE KEY", "ENCRYPTED PRIVATE KEY");
    let sealed = files.write("sealed.key", &sealed);
    let cut = files.write("cut.key", key.split_at(60).0);
    let missing = files.folder.path().join("missing.pem");
    let chain = files.write("chain.pem", &format!("{certificate}{other}"));
    check(&good, &good_key, "");
    check(&chain, &good_key, "");
    let tls = Tls { certificate: chain, key: good_key.clone() };
    assert!(acceptor(&tls).is_ok());
    check(&missing, &good_key, "missing.pem: cannot be read: No such file");
    check(&good, &missing, "missing.pem: cannot be read: No such file");
    check(&empty, &good_key, "empty.pem: holds no certificate: give a PEM file");
    check(&good_key, &good_key, "good.key: holds no certificate: give a PEM file");
    check(&broken, &good_key, "broken.pem: is no PEM file");
    check(&none, &good_key, "none.pem: holds a certificate that is none");
    check(&good, &good, "good.pem: holds no private key: give an unencrypted PEM file");
    check(&good, &sealed, "sealed.key: holds no private key: give an unencrypted PEM file");
    check(&good, &cut, "cut.key: ");
    check(&good, &other_key, "other.key: belongs to another certificate than ");
    let roots = connector(&Roots::File(empty), &[]).err().unwrap().to_string();
    assert!(roots.contains("empty.pem: holds no certificate"), "{roots}");
    assert!(connector(&Roots::File(good), &[]).is_ok());
}
