//! The programs against a slow and plain way to say the same.

use proptest::prelude::*;

use libc::SECCOMP_RET_ACTION_FULL;

use super::*;

/// Numbers, and often those that the programs ask about.
fn any_call() -> impl Strategy<Value = c_long> {
    let asked = [
        libc::SYS_openat,
        libc::SYS_clone,
        libc::SYS_unshare,
        libc::SYS_ioctl,
        libc::SYS_fchmodat,
        libc::SYS_mknodat,
        libc::SYS_personality,
        libc::SYS_utimensat,
    ];
    prop_oneof![3 => prop::sample::select(asked.to_vec()), 1 => 0..CALLS]
}

/// Registers with few bits set, with any, and with those of a terminal's requests.
fn any_register() -> impl Strategy<Value = u64> {
    let few = prop::collection::vec(0..64_u32, 0..4)
        .prop_map(|bits| bits.into_iter().fold(0, |register, bit| register | 1 << bit));
    let request = (0x5410..0x5428_u64, any::<u32>())
        .prop_map(|(request, high)| request | u64::from(high) << 32);
    prop_oneof![3 => few, 1 => any::<u64>(), 1 => request]
}

/// The slow way to say what `closed` answers where arguments count, and nothing elsewhere.
fn reference(call: c_long, [a0, a1, a2, a3, ..]: [u64; 6]) -> Option<bool> {
    // Most arguments are ints, and a mode is shorter still.
    let [int0, int1] = [a0, a1].map(|register| register & 0xffff_ffff);
    let set_id = |mode: u64| mode & 0o6000 != 0;
    Some(match call {
        libc::SYS_openat => set_id(a3) && a2 & (register(libc::O_CREAT) | O_TMPFILE) != 0,
        libc::SYS_clone => [17, 25, 26, 27, 28, 29, 30].iter().any(|bit| a0 >> bit & 1 == 1),
        libc::SYS_unshare => a0 & !0x0005_0f00 != 0,
        libc::SYS_ioctl if matches!(int1 & 0xff00, 0x9400 | 0xbc00) => return None,
        libc::SYS_ioctl => [0x5412, 0x541c, 0x5423].contains(&int1),
        libc::SYS_fchmodat => a2 & 0o4000 != 0,
        libc::SYS_mknodat => set_id(a2) || [0o020_000, 0o060_000].contains(&(a2 & 0o170_000)),
        libc::SYS_personality => int0 != 0xffff_ffff && int0 & !0x0006_0008 != 0,
        _ => return None,
    })
}

/// Its own bit, without the one of a directory.
const O_TMPFILE: u64 = 0o20_000_000;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20_000))]

    #[test]
    fn the_program_says_what_the_slow_way_says(
        call in any_call(),
        args in prop::array::uniform6(any_register()),
    ) {
        let answer = ask(&closed(&NAMESPACES), call, args);
        if let Some(refuses) = reference(call, args) {
            prop_assert_eq!(answer, if refuses { refused(EPERM) } else { ALLOWED });
        }
    }

    /// Of two programs the kernel takes the answer that permits less.
    #[test]
    fn one_program_says_what_two_say(
        call in any_call(),
        args in prop::array::uniform6(any_register()),
    ) {
        for (what, watched) in [(NAMESPACES, Watch::Changes), (LANDLOCK, Watch::Everything)] {
            let two = [ask(&closed(&what), call, args), ask(&watch(watched), call, args)];
            let less = two.into_iter().min_by_key(|answer| answer & SECCOMP_RET_ACTION_FULL);
            prop_assert_eq!(Some(ask(&both(&what, watched), call, args)), less);
        }
    }

    #[test]
    fn an_open_is_watched_when_it_may_write(args in prop::array::uniform6(any_register())) {
        let named = [libc::O_WRONLY, libc::O_RDWR, libc::O_CREAT, libc::O_TRUNC, libc::O_APPEND];
        let writes = args[2] & O_TMPFILE != 0
            || named.iter().any(|flag| args[2] & register(*flag) != 0);
        let answer = ask(&watch(Watch::Changes), libc::SYS_openat, args);
        prop_assert_eq!(answer, if writes { NOTIFIED } else { ALLOWED });
        prop_assert_eq!(ask(&watch(Watch::Everything), libc::SYS_openat, args), NOTIFIED);
        let place = args[2] & register(libc::O_PATH | libc::O_DIRECTORY) != 0;
        let answer = ask(&watch(Watch::Opens), libc::SYS_openat, args);
        prop_assert_eq!(answer, if place && !writes { ALLOWED } else { NOTIFIED });
    }

    /// Whatever changes something by the description is watched.
    #[test]
    fn changes_are_watched(call in 0..CALLS, args in prop::array::uniform6(any_register())) {
        if let Some(syscalls::Described::Path(described)) = syscalls::describe(call, args)
            && described.operation.writes()
        {
            prop_assert_eq!(ask(&watch(Watch::Changes), call, args), NOTIFIED);
        }
    }
}
