//! One value per type, made when it is first asked for and kept as long as its owner. Reading takes no lock.

use std::any::{Any, TypeId};
use std::sync::OnceLock;

/// A list that only grows; there are a handful of types, so walking it costs less than any map.
#[derive(Default)]
pub(crate) struct Slots(OnceLock<Box<Slot>>);

struct Slot {
    kind: TypeId,
    value: OnceLock<Box<dyn Any + Send + Sync>>,
    rest: Slots,
}

impl Slots {
    /// The value of this type. Who asks while it is being made waits for it; it is made once.
    pub fn get<T: Send + Sync + 'static>(&self, make: impl FnOnce() -> T) -> &T {
        let slot = self.slot(TypeId::of::<T>());
        let value = slot.value.get_or_init(|| Box::new(make()));
        match value.downcast_ref() {
            Some(value) => value,
            None => unreachable!("a slot holds the type that it is found by"),
        }
    }

    fn slot(&self, kind: TypeId) -> &Slot {
        let slot = self.0.get_or_init(|| {
            Box::new(Slot {
                kind,
                value: OnceLock::new(),
                rest: Slots::default(),
            })
        });
        match slot.kind == kind {
            true => slot,
            false => slot.rest.slot(kind),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn each_type_is_made_once_however_many_ask_at_the_same_time() {
        #[derive(Debug, PartialEq)]
        struct Other(&'static str);
        let slots = Slots::default();
        let made = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    let number = slots.get(|| made.fetch_add(1, Ordering::SeqCst) + 41);
                    assert_eq!(*number, 41);
                    assert_eq!(slots.get(|| Other("x")), &Other("x"));
                });
            }
        });
        assert_eq!(made.load(Ordering::SeqCst), 1);
        assert_eq!(slots.get(|| "never made"), &"never made");
        assert_eq!(slots.get(|| Other("later")), &Other("x"));
    }

    #[test]
    fn making_one_may_ask_for_another() {
        let slots = Slots::default();
        let text = slots.get(|| format!("{} tools", slots.get(|| 3_usize)));
        assert_eq!(text, "3 tools");
    }
}
