//! Values of JavaScript's thread inside something that other threads may hold.

use std::{cell::RefCell, mem::ManuallyDrop, thread::ThreadId};

/// A value that only the thread it was made on looks into.
pub struct JsCell<T> {
    thread: ThreadId,
    value: ManuallyDrop<RefCell<T>>,
}

// SAFETY: the value is touched, and dropped, on its own thread only
unsafe impl<T> Send for JsCell<T> {}
// SAFETY: as above
unsafe impl<T> Sync for JsCell<T> {}

impl<T> JsCell<T> {
    /// Call it on JavaScript's thread.
    pub fn new(value: T) -> Self {
        Self {
            thread: std::thread::current().id(),
            value: ManuallyDrop::new(RefCell::new(value)),
        }
    }

    /// Looks into it; `None` on another thread, or while somebody looks already.
    pub fn with<R>(&self, work: impl FnOnce(&mut T) -> R) -> Option<R> {
        if !self.is_at_home() {
            return None;
        }
        self.value.try_borrow_mut().ok().map(|mut value| work(&mut value))
    }

    fn is_at_home(&self) -> bool {
        std::thread::current().id() == self.thread
    }
}

// what is not let go by the close of its owner, and then not on its own thread, is left to the end of the process
impl<T> Drop for JsCell<T> {
    fn drop(&mut self) {
        if self.is_at_home() {
            // SAFETY: once, because the cell is dropped once; nobody touches it afterwards
            unsafe { ManuallyDrop::drop(&mut self.value) };
        }
    }
}
