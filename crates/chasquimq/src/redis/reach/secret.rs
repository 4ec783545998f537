//! What is told to servers alone.

use std::fmt;

/// A password, or a private key. Whatever is formatted that holds one shows only that it does.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// The secret itself.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl From<String> for Secret {
    fn from(secret: String) -> Self {
        Self(secret)
    }
}

impl From<&str> for Secret {
    fn from(secret: &str) -> Self {
        Self(secret.to_owned())
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("***")
    }
}

#[cfg(test)]
mod tests {
    use crate::redis::{
        connection::Connection,
        reach::options::{Address, ConnectOptions, Discovery, DiscoveryKind, SentinelOptions, TlsOptions},
    };

    fn with_secrets() -> ConnectOptions {
        let tls = TlsOptions {
            cert: Some("a certificate".to_owned()),
            key: Some("-----BEGIN PRIVATE KEY-----hunter2".into()),
            ..TlsOptions::default()
        };
        let sentinel = SentinelOptions {
            master: "mymaster".to_owned(),
            password: Some("hunter2 of sentinels".into()),
            tls: Some(Box::new(tls.clone())),
            ..SentinelOptions::default()
        };
        ConnectOptions {
            username: Some("me".to_owned()),
            password: Some("hunter2".into()),
            tls: Some(tls),
            discovery: Some(Discovery {
                nodes: vec![Address {
                    host: "h".to_owned(),
                    port: 1,
                }],
                nat: Vec::new(),
                kind: DiscoveryKind::Sentinel(sentinel),
            }),
            ..ConnectOptions::default()
        }
    }

    #[test]
    fn what_is_formatted_has_no_password_and_no_key() {
        let options = with_secrets();
        let connection = Connection::new(options.clone(), |_| {});
        let url = ConnectOptions::try_from("redis://me:hunter2@db.example").expect("options");
        for shown in [
            format!("{options:?}"),
            format!("{options:#?}"),
            format!("{:?}", options.tls),
            format!("{:?}", options.discovery),
            format!("{connection:?}"),
            format!("{url:?}"),
        ] {
            assert!(!shown.contains("hunter2") && shown.contains("***"), "{shown}");
        }
    }

    /// A server that knows no `AUTH`, and repeats what it was asked.
    #[tokio::test]
    async fn a_server_that_repeats_the_password_is_not_quoted() {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};

        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let options = ConnectOptions {
            port: listener.local_addr().expect("an address").port(),
            discovery: None,
            tls: None,
            ..with_secrets()
        };
        tokio::spawn(async move {
            while let Ok((mut client, _)) = listener.accept().await {
                let mut asked = [0; 1000];
                let _ = client.read(&mut asked).await;
                let refusal = b"-ERR unknown command 'AUTH', with args beginning with: 'me' 'hunter2' \r\n";
                let _ = client.write_all(refusal).await;
            }
        });
        let connection = Connection::new(options, |event| assert!(!format!("{event:?}").contains("hunter2")));
        let error = connection.ready().await.expect_err("a refusal");
        assert_eq!(error.to_string(), "ERR unknown command 'AUTH'");
        assert!(!format!("{error:?}").contains("hunter2"));
    }
}
