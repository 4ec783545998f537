//! `NativeEvents`: a queue's event log.

use std::{sync::Arc, time::Duration};

use chasquimq::{events::EventTexts, ConnectionEvent, Error, EventMessage, EventReader, Keys};
use napi::{
    bindgen_prelude::{Function, Object, Uint32Array},
    Env, Result,
};
use napi_derive::napi;
use tokio::sync::Semaphore;

use crate::{
    connection::NativeConnection,
    error::{Happened, NativeError},
    runtime::{Held, Runtime},
    sink::Sink,
};

/// Messages that wait for JavaScript at most; the reader waits as well then.
const MESSAGES_AT_ONCE: usize = 4;
/// V8's longest string has that many characters, and no text has more of them than bytes.
const LONGEST_TEXT: usize = (1 << 29) - 24;

/// What a reader is made from.
#[napi(object, object_to_js = false)]
pub struct NativeEventsOptions {
    /// Queue name.
    pub name: String,
    /// Key prefix.
    pub prefix: String,
    /// Server.
    pub connection: NativeConnection,
    /// Accept any server version.
    pub skip_version_check: Option<bool>,
    /// `$`, or the id after which to read.
    pub last_event_id: String,
    /// Longest read, ms.
    pub blocking_timeout: f64,
}

/// What a reader tells.
#[napi(object)]
#[derive(Default)]
pub struct EventsMessage {
    /// What happened.
    pub events: Option<NativeEventTexts>,
    /// Reading failed.
    pub error: Option<NativeError>,
    /// It is not open any more, or still not.
    pub closed: Option<bool>,
    /// A server that runs full deletes jobs, by this policy.
    pub eviction: Option<String>,
    /// The server has somebody else's library under this name, which is ours.
    pub foreign_library: Option<String>,
}

/// Events, by their names.
#[napi(object)]
pub struct NativeEventTexts {
    /// The names, each once.
    pub names: Vec<String>,
    /// Of each name its events, in order, JSON text: `[[id, args], ...]`.
    pub texts: Vec<String>,
    /// The order of all of them, in pairs: the index of a name, and how many of its events come next.
    pub runs: Uint32Array,
}

/// One reader. See `src/events/queue-events.ts`.
#[napi]
pub struct NativeEvents {
    reader: Arc<EventReader>,
    runtime: Held,
    sink: Sink<Told, EventsMessage>,
    last_event_id: String,
    wait: Duration,
}

#[napi]
impl NativeEvents {
    /// Makes a reader; nothing is connected yet.
    #[napi(constructor)]
    pub fn new(
        options: NativeEventsOptions,
        #[napi(ts_arg_type = "(message: EventsMessage) => void")] on_message: Function<'_, EventsMessage, ()>,
    ) -> Result<Self> {
        let room = Arc::new(Semaphore::new(MESSAGES_AT_ONCE));
        let handled = room.clone();
        let sink = Sink::new(&on_message, move |message| {
            if matches!(message, Told::Events(_)) {
                handled.add_permits(1);
            }
            Ok(to_message(message))
        })?;
        let events = sink.clone();
        let reader = EventReader::new(
            options.connection.to_options(options.skip_version_check),
            Keys::new(&options.prefix, &options.name),
            Arc::new(move |message| events.send(written(message))),
        )
        .paced_by(room);
        Ok(Self {
            reader: Arc::new(reader),
            runtime: Held::new(Runtime::shared()?),
            sink,
            last_event_id: options.last_event_id,
            wait: Duration::from_millis(options.blocking_timeout.max(1.0) as u64),
        })
    }

    /// Resolves when connected and, after `run()`, when the first event to read is fixed.
    #[napi(ts_return_type = "Promise<void>")]
    pub fn ready<'env>(&self, env: &'env Env) -> Result<Object<'env>> {
        let reader = self.reader.clone();
        self.runtime.get()?.promise(env, async move { reader.ready().await })
    }

    /// Reads until closed.
    #[napi]
    pub fn run(&self) -> Result<()> {
        let (runtime, sink) = (self.runtime.get()?, self.sink.clone());
        let reading = self.reader.run(
            &self.last_event_id,
            self.wait,
            Arc::new(move |message| sink.send(written(message))),
        );
        runtime.handle().spawn(reading);
        Ok(())
    }

    /// Ends reading.
    #[napi(ts_return_type = "Promise<void>")]
    pub fn close<'env>(&self, env: &'env Env) -> Result<Object<'env>> {
        self.reader.close();
        self.sink.close();
        self.runtime.close(env, async {})
    }
}

// a JavaScript thread that ends without a close: nobody hears of what would be read
impl Drop for NativeEvents {
    fn drop(&mut self) {
        self.reader.close();
    }
}

/// What the reader tells: its events are written where they are read, as the JavaScript thread has enough to do.
enum Told {
    Events(EventTexts),
    Failed(Error),
    Connection(ConnectionEvent),
}

fn written(message: EventMessage) -> Told {
    match message {
        EventMessage::Events(events) => Told::Events(EventTexts::new(&events)),
        EventMessage::Failed(error) => Told::Failed(error),
        EventMessage::Connection(event) => Told::Connection(event),
    }
}

fn to_message(message: Told) -> EventsMessage {
    let mut told = EventsMessage::default();
    match message {
        Told::Events(EventTexts { names, texts, runs }) => {
            match texts.iter().map(String::len).find(|bytes| *bytes > LONGEST_TEXT) {
                Some(bytes) => {
                    let error = Error::Invalid(format!("an event of {bytes} bytes is too long to be told"));
                    told.error = Some(NativeError::from(&error));
                }
                None => {
                    let runs = Uint32Array::new(runs);
                    told.events = Some(NativeEventTexts { names, texts, runs });
                }
            }
        }
        Told::Failed(error) => told.error = Some(NativeError::from(&error)),
        Told::Connection(event) => {
            let happened = Happened::from(event);
            (told.error, told.closed) = (happened.failure, happened.closed);
            (told.eviction, told.foreign_library) = (happened.eviction, happened.foreign_library);
        }
    }
    told
}
