//! Over a pair of sockets, of which the test is the server.

use std::{
    future::poll_fn,
    io::{Read, Write},
    os::unix::net::UnixStream,
    sync::atomic::{AtomicUsize, Ordering},
    task::Poll,
};

use super::{driver::Driven, *};
use crate::redis::socket::Socket;

fn open_pair() -> (Wire, UnixStream) {
    let (near, far) = UnixStream::pair().expect("a pair");
    near.set_nonblocking(true).expect("an option");
    let transport = Transport::new(Socket::from(near), None);
    (Wire::over(transport, "here 0 None".to_owned()), far)
}

fn text(bytes: usize) -> Vec<u8> {
    format!("${bytes}\r\n{}\r\n", "x".repeat(bytes)).into_bytes()
}

#[tokio::test]
async fn replies_are_received_whole_until_something_comes_that_is_none() {
    let (wire, mut far) = open_pair();
    let watched = wire.watched(|| {}).expect("nobody watches");
    watched.send(&Commands::default(), 4).expect("an open connection");
    let all = [b":7\r\n*2\r\n:1\r\n".as_slice(), &text(100_000), b"+OK\r\n:x\r\n"].concat();
    let mut replies = Vec::new();
    for piece in all.chunks(3000) {
        far.write_all(piece).expect("room");
        assert!(watched.receive(&mut replies).is_ok() || replies.len() == 3);
    }
    assert_eq!(replies.len(), 3);
    let fault = wire.fault().expect("a fault").to_string();
    assert!(fault.contains("not a number: :x"), "{fault}");
    assert!(watched.send(&Commands::default(), 1).is_err());
}

#[tokio::test]
async fn what_nobody_has_asked_for_ends_the_connection() {
    let (wire, mut far) = open_pair();
    far.write_all(b"+OK\r\n").expect("room");
    wire.ended().await;
    let error = wire.ask(b"PING\r\n".to_vec(), 1).await.expect_err("why");
    assert!(error.to_string().contains("nobody has asked for"), "{error}");
}

fn long_commands(texts: &[Vec<u8>]) -> Commands<'_> {
    let mut commands = Commands::default();
    texts.iter().for_each(|text| commands.push_set("name", text, "9"));
    commands
}

/// Reads so many bytes, and answers with numbers up to that.
async fn answer(mut far: UnixStream, bytes: usize, numbers: u32) -> (Vec<u8>, UnixStream) {
    let answering = tokio::task::spawn_blocking(move || {
        let mut asked = vec![0; bytes];
        far.read_exact(&mut asked).expect("all that was asked");
        let answers: String = (0..numbers).map(|number| format!(":{number}\r\n")).collect();
        far.write_all(answers.as_bytes()).expect("room");
        (asked, far)
    });
    answering.await.expect("a server")
}

/// Begins to ask: what it asks is given by then.
async fn begin(
    wire: &Wire,
    commands: Vec<u8>,
    replies: usize,
) -> impl Future<Output = RedisResult<Vec<Answer>>> + use<> {
    let wire = wire.clone();
    let mut asking = Box::pin(async move { wire.ask(commands, replies).await });
    let first = poll_fn(|context| Poll::Ready(asking.as_mut().poll(context))).await;
    assert!(first.is_pending());
    asking
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_system_does_not_take_at_once_is_sent_later() {
    let texts = [vec![b'a'; 3 << 20], Vec::new(), vec![b'b'; 5 << 20]];
    let commands = long_commands(&texts);
    let expected = [commands.pieces().collect::<Vec<_>>().concat().as_slice(), b"next"].concat();

    let (wire, far) = open_pair();
    let watched = wire.watched(|| {}).expect("nobody watches");
    assert!(!watched.send(&commands, 3).expect("a part is sent"));
    assert!(!watched
        .send(&b"next".to_vec().into(), 1)
        .expect("it waits for the rest"));
    let (asked, _far) = answer(far, expected.len(), 4).await;
    assert!(asked == expected);
    let mut replies = Vec::new();
    watched.receive(&mut replies).expect("an open connection");
    assert_eq!(replies.len(), 4);

    let (wire, far) = open_pair();
    let first = begin(&wire, commands.pieces().collect::<Vec<_>>().concat(), 3).await;
    let second = begin(&wire, b"next".to_vec(), 1).await;
    let (asked, _far) = answer(far, expected.len(), 4).await;
    assert!(asked == expected);
    let (first, second) = tokio::join!(first, second);
    assert_eq!((first.expect("answers").len(), second.expect("answers").len()), (3, 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_engine_and_an_event_loop_are_answered_in_the_order_in_which_they_asked() {
    let (wire, far) = open_pair();
    let (wakes, woken) = std::sync::mpsc::channel();
    let wake = move || wakes.send(()).expect("an event loop");
    let watched = wire.watched(wake).expect("nobody watches");
    let mut asked = Vec::new();
    for _ in 0..50 {
        watched.send(&b"?".to_vec().into(), 1).expect("an open connection");
        asked.push(begin(&wire, b"?".to_vec(), 1).await);
    }
    let (_, _far) = answer(far, 100, 100).await;
    for (place, asked) in asked.into_iter().enumerate() {
        let answers = asked.await.expect("answers");
        assert!(matches!(answers.as_slice(), [Ok(Value::Int(number))] if *number == 2 * place as i64 + 1));
    }
    woken.recv().expect("a call");
    let mut replies = Vec::new();
    watched.receive(&mut replies).expect("an open connection");
    let numbers: Vec<_> = replies.into_iter().map(|reply| reply.expect("a number")).collect();
    assert!(numbers.into_iter().eq((0..50).map(|place| Value::Int(2 * place))));
}

#[tokio::test]
async fn an_event_loop_gets_no_answers_to_what_the_one_before_it_asked() {
    let (wire, far) = open_pair();
    let first = wire.watched(|| {}).expect("nobody watches");
    first.send(&b"?".to_vec().into(), 1).expect("an open connection");
    drop(first);
    let second = wire.watched(|| {}).expect("nobody watches");
    second.send(&b"?".to_vec().into(), 1).expect("an open connection");
    let (_, _far) = answer(far, 2, 2).await;
    let mut replies = Vec::new();
    second.receive(&mut replies).expect("an open connection");
    assert!(matches!(replies.as_slice(), [Ok(Value::Int(1))]), "{replies:?}");
}

#[tokio::test]
async fn one_event_loop_keeps_others_away_as_long_as_it_watches() {
    let (wire, _far) = open_pair();
    let first = wire.watched(|| {}).expect("nobody watches");
    assert!(wire.watched(|| {}).is_none());
    drop(first);
    assert!(wire.watched(|| {}).is_some());
}

/// Notes what it hears.
#[derive(Debug, Default)]
struct Noting {
    heard: Mutex<Vec<&'static str>>,
}

impl Listener for Noting {
    fn id(&self) -> u64 {
        7
    }

    fn hear(&self) {
        self.heard.lock().expect("notes").push("heard");
    }

    fn ask(&self) {
        self.heard.lock().expect("notes").push("asked");
    }

    fn act(&self, is_unread: bool) {
        self.heard
            .lock()
            .expect("notes")
            .push(if is_unread { "unread" } else { "acts" });
    }

    fn waits(&self, is_stuck: bool) -> bool {
        self.heard
            .lock()
            .expect("notes")
            .push(if is_stuck { "stuck" } else { "waits" });
        true
    }

    fn lose(&self) {
        self.heard.lock().expect("notes").push("lost");
    }
}

/// A push of the server's, about the channel `c`.
fn push(kind: &str, rest: &str) -> Vec<u8> {
    format!(">3\r\n${}\r\n{kind}\r\n$1\r\nc\r\n{rest}\r\n", kind.len()).into_bytes()
}

async fn until_noted(listener: &Noting, notes: &[&str]) {
    while *listener.heard.lock().expect("notes") != notes {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn an_event_loop_that_does_not_read_though_it_is_asked_to_is_stuck() {
    let (wire, _far) = open_pair();
    let wakes = Arc::new(AtomicUsize::new(0));
    let counted = wakes.clone();
    let watched = wire.watched(move || {
        counted.fetch_add(1, Ordering::Relaxed);
    });
    let watched = watched.expect("nobody watches");
    let listener = Arc::new(Noting::default());
    wire.add_listener("c", listener.clone());
    let look = || Driven::look(&*wire.shared);
    look();
    until_noted(&listener, &[]).await;
    wire.expect();
    look();
    watched.receive(&mut Vec::new()).expect("an open connection");
    look();
    look();
    until_noted(&listener, &["waits", "waits", "stuck"]).await;
    assert_eq!(wakes.load(Ordering::Relaxed), 3);
}

#[tokio::test]
async fn news_comes_between_answers_and_only_to_who_listens() {
    let (wire, mut far) = open_pair();
    let listener = Arc::new(Noting::default());
    wire.add_listener("c", listener.clone());
    let answers = wire.give(b"x".to_vec(), 2);
    let all = [
        push("ssubscribe", ":1"),
        push("smessage", "$0\r\n"),
        push("message", "$0\r\n"),
        b":7\r\n".to_vec(),
    ];
    far.write_all(&all.concat()).expect("room");
    let answers = answers.await.expect("answers");
    let answers: Vec<_> = answers.into_iter().map(|answer| answer.expect("a value")).collect();
    assert_eq!(answers, [Value::Okay, Value::Int(7)]);
    until_noted(&listener, &["heard", "acts"]).await;
    // the slot goes to another server
    far.write_all(&push("sunsubscribe", ":0")).expect("room");
    until_noted(&listener, &["heard", "acts", "lost"]).await;
    far.write_all(&push("smessage", "$0\r\n")).expect("room");
    drop(far);
    wire.ended().await;
    until_noted(&listener, &["heard", "acts", "lost"]).await;
}

#[tokio::test]
async fn who_leaves_a_channel_hears_nothing_more() {
    let (wire, mut far) = open_pair();
    let listener = Arc::new(Noting::default());
    wire.add_listener("c", listener.clone());
    wire.leave_channel("c");
    let answer = wire.give(b"x".to_vec(), 1);
    far.write_all(
        &[
            push("smessage", "$0\r\n"),
            push("sunsubscribe", ":0"),
            b":7\r\n".to_vec(),
        ]
        .concat(),
    )
    .expect("room");
    let answers = answer.await.expect("an answer");
    assert_eq!(
        answers.into_iter().next().expect("one").expect("a value"),
        Value::Int(7)
    );
    until_noted(&listener, &[]).await;
}

#[tokio::test]
async fn an_event_loop_that_watches_takes_news_and_what_it_leaves_the_engine_does() {
    let (wire, mut far) = open_pair();
    let listener = Arc::new(Noting::default());
    wire.add_listener("c", listener.clone());
    let watched = wire.watched(|| {}).expect("nobody watches");
    far.write_all(&push("smessage", "$0\r\n")).expect("room");
    let mut heard = Vec::new();
    while heard.is_empty() {
        watched.receive(&mut Vec::new()).expect("an open connection");
        heard = watched.heard();
    }
    assert_eq!(heard[0].id(), 7);
    until_noted(&listener, &["heard"]).await;
    far.write_all(&push("smessage", "$0\r\n")).expect("room");
    // nobody reads, until the engine looks
    let noted = async { until_noted(&listener, &["heard", "heard", "unread"]).await };
    tokio::time::timeout(std::time::Duration::from_secs(10), noted)
        .await
        .expect("a look");
}
