//! Tokens signed with RSA by `openssl`, which the tests' own library cannot make keys for: two public moduli, one of 2048
//! bits and one of 1024, and signatures of the same claims.

use serde_json::{Value as Json, json};

use crate::principal::tests::kit::base64url;

const N: &str = "\
    47O0qQRT0qjRiiCFkL6VUdZABZoimj3J3jA6-gd4jIoXz3J9NEI5SLiMuTdAZC5oIs-EeTFSJjG1A4y3dTu8YDGUF1Y1_rEqkTDL\
    ev0v-QBu1T14NPUIwsT4l-r_tbx3gatYp1ZbqrcaWQFUKkmUZQYzFeaKf_b2hWxWufkd4M9-ftj1rE1FWw7fYq-fuQ0Zglqfbq8p\
    Qi-VIN5lbmZ5-xSSJZm8t6QRsezCHWvEu4dF7FgPbwJCq5V1OcugbqstVuMGZuS-veGMzL481uLNsJFvWtSDCeNu_g70dHkNZVhj\
    TR6l9Hx99CHybDQ7ANpiJiTxKse4ftDh4KH-iHvEjQ\
    ";
const SMALL_N: &str = "\
    z06_I-HLEnEpteYuMH7yFsOVrQ1JSNcFgOG4_wJ_p6LfkjdwLeAl9whFIVy4KWcdRtf985XA1apXyHTJXoQsHsTUo2OkdIVbxuwn\
    FdaWMVIEGIHAMWBWQxIJUldMdZfB1Apa-tQb8LaZG-N0lIl2KvRN4wAGac5bcwvzVo6GsKs\
    ";
const CLAIMS: &str = "\
    eyJpc3MiOiJodHRwczovL2lkcC5leGFtcGxlIiwiYXVkIjoib3JkZXJzIiwic3ViIjoiYWxpY2UiLCJleHAiOjE3MDAwMDA2MDB9\
    ";
const RS256: &str = "\
    O5CAHD6VItMYgwMKs3zm1G1ipEQm1nJEGyzyw-uIqN4Y0oH3lCMj_LUxkXy1u1fTd5UUr6yi75ttwhWGUNak4YkLn_eQLBB9NR4n\
    pQJ8-mdM2z_yPgtCBqxvXPmSREyoScW1eJYYGqlrOHboJk59Sw3aQBknXbMfmRMp6U9qQszy5Bx4eGnR6ThUSAKp0Dfj1j1jzowV\
    i2ao8hx0L-YpE9S1GkZTE71iNYHyj097wIRhv7z3yttQaKpsIbfGPUUAGR99Zb55b3hggNEXgmfWmC-V0NtIIa4o-TG_IV-Rb0iG\
    5WH-FmIqW599yrX1rxY6LXQXXnkf5w9NAE-sZl6r-w\
    ";
const RS512: &str = "\
    dmTjjFERE9aOHJRrKL_NGiwuXP03dqffvnUfGutyLq8CxRZCxstjbPM5VZRj273cE_5eBpW785RHVdv4heJCdGZDiOh3QYlCOzQI\
    ECeEG_mI-k9WGtY_nTmuVsZEQuxAwRIfN4u4COTmbE0Db0cJk-P2v8IPlAItVIio4Pyxu75uGiRtyJO3McEK199Z_cJ8hnAiauMR\
    KpvyUx8g3IeUIHRqrQQcndIxxrmI5-sWtf9kXCaD-eba5Ns_kLpsj_74IAZx3YNlF0fB9v-I48Btws-UezHvm8mZdHR1_FUD5Ld0\
    gK8gkrkJglCjO3oXnbS4zExYKRKJcl4ndMyN1NvpOw\
    ";
const PS256: &str = "\
    mImAgCAPBjEhI2ekkC7Jk2OJEi_MZiaD7o8_ziuEl8L2S-ydTb7mJSQXdkSCsLiCcnTbO0ax5jfe-pawHm_rDyOjj9YlumzOSBDl\
    Az6dt4WyPGGWw0dvrot4yk2AB5h92V_Udvnbt_bZ6QZAXahHnFSppLqojatNPOyiUQNSu2QWa_K0FO6W7GbZgHeE0iLNIZXCjSbl\
    m2PT813ZlzYtaCIWXXvsD672RGLyef_e9CLiva_iyEIckFlE6r0WTV_TeOhBMaJ3GD6Intxbq9X4RycVnhbl0DhsDaH6FMsVqXQZ\
    2qdkLW77VqGE0pkhAVKh3zMGOeCWhdjsYuFCUXDQXw\
    ";
const SMALL: &str = "\
    Vv05f227u2rT1OmmX8NnrGiSNZyOkplRbSAyK23hamW4impHvS_P4elU3KTYb_c3V5DzuBkIn-MgVDvRyArwmXggQ5TanEiuAS6N\
    drQbPz2UCTloy3ECaQcqTZO3WgTp9fcqCpXGYj5HX2txMDOkoc_luABUNKIgjUf5lBnTu5U\
    ";

/// The key of 2048 bits; some issuers write its number with a zero in front.
pub(super) fn jwk(zero_in_front: bool) -> Json {
    let n = if zero_in_front { N_WITH_ZERO } else { N };
    json!({ "kty": "RSA", "kid": "rsa", "n": n, "e": "AQAB" })
}

/// A key that is too short to be believed.
pub(super) fn small_jwk() -> Json {
    json!({ "kty": "RSA", "kid": "rsa", "n": SMALL_N, "e": "AQAB" })
}

/// The token of an algorithm, or of the short key.
pub(super) fn token(algorithm: &str, small: bool) -> String {
    let header = json!({ "alg": algorithm, "kid": "rsa" }).to_string();
    let signature = match (algorithm, small) {
        ("RS256", true) => SMALL,
        ("RS256", false) => RS256,
        ("RS512", false) => RS512,
        ("PS256", false) => PS256,
        _ => panic!("no such token"),
    };
    format!("{}.{CLAIMS}.{signature}", base64url(header.as_bytes()))
}
const N_WITH_ZERO: &str = "\
    AOOztKkEU9Ko0YoghZC-lVHWQAWaIpo9yd4wOvoHeIyKF89yfTRCOUi4jLk3QGQuaCLPhHkxUiYxtQOMt3U7vGAxlBdWNf6xKpEw\
    y3r9L_kAbtU9eDT1CMLE-Jfq_7W8d4GrWKdWW6q3GlkBVCpJlGUGMxXmin_29oVsVrn5HeDPfn7Y9axNRVsO32Kvn7kNGYJan26v\
    KUIvlSDeZW5mefsUkiWZvLekEbHswh1rxLuHRexYD28CQquVdTnLoG6rLVbjBmbkvr3hjMy-PNbizbCRb1rUgwnjbv4O9HR5DWVY\
    Y00epfR8ffQh8mw0OwDaYiYk8SrHuH7Q4eCh_oh7xI0\
    ";
