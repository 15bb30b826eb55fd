//! The macro with which a room declares its entries.

/// Declares the entries of a room: a struct with one public field for each, and their table.
///
/// ```text
/// room! {
///     /// The entries of the room `decide`.
///     DecideTuning {
///         /// Smallest ratio of remaining service to the service of the newcomer at which a job is preempted for gain.
///         min_preemption_gain: f64 = 1.5, in 1.0..=100.0, unit "times", from Decision(8);
///     }
/// }
/// ```
///
/// The doc comment is the meaning on the reference page: one sentence. The field `min_preemption_gain` is
/// `minPreemptionGain` in documents. A type of value is whatever implements [`Value`](super::Value).
macro_rules! room {
    (
        $(#[$about:meta])*
        $room:ident {
            $(
                $(#[doc = $meaning:literal])+
                $name:ident: $kind:ty = $default:expr, in $range:expr, unit $unit:literal, from $origin:expr;
            )*
        }
    ) => {
        $(#[$about])*
        #[derive(Clone, Debug, PartialEq)]
        pub struct $room {
            $(
                $(#[doc = $meaning])+
                pub $name: $kind,
            )*
        }

        impl $room {
            /// The entries without overrides.
            pub const DEFAULT: Self = Self { $($name: $default,)* };

            pub(super) fn entries(&self, room: &'static str) -> Vec<$crate::tuning::Entry> {
                let _ = room;
                vec![$({
                    let range: std::ops::RangeInclusive<$kind> = $range;
                    $crate::tuning::Entry {
                        name: $crate::tuning::room::document_name(stringify!($name)),
                        room,
                        value: $crate::tuning::Value::text(self.$name),
                        default: $crate::tuning::Value::text(Self::DEFAULT.$name),
                        least: $crate::tuning::Value::text(*range.start()),
                        most: $crate::tuning::Value::text(*range.end()),
                        kind: <$kind as $crate::tuning::Value>::KIND,
                        unit: $unit,
                        meaning: concat!($($meaning),+).trim().to_owned(),
                        origin: $origin,
                    }
                }),*]
            }

            /// Overrides the entry of this name, if it is one of this room.
            pub(super) fn set(&mut self, name: &str, text: &str) -> Option<Result<(), $crate::tuning::TuningError>> {
                let _ = text;
                $(if $crate::tuning::room::document_name(stringify!($name)) == name {
                    return Some($crate::tuning::value::read(text, $range).map(|value| self.$name = value));
                })*
                let _ = name;
                None
            }
        }

        impl Default for $room {
            fn default() -> Self {
                Self::DEFAULT
            }
        }
    };
}

pub(super) use room;

/// The name of a field in documents: `min_preemption_gain` is `minPreemptionGain`.
pub(super) fn document_name(field: &str) -> String {
    let mut words = field.split('_');
    let first = words.next().unwrap_or_default().to_owned();
    words.fold(first, |name, word| {
        let (initial, rest) = word.split_at(word.len().min(1));
        name + &initial.to_ascii_uppercase() + rest
    })
}
