//! What the store promises, asked of both databases, and what it does when processes die and disks fill.
//!
//! Every test of the list below runs on SQLite and on Postgres.

#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::print_stderr,
    reason = "tests may panic, start processes, read the environment and say how fast it was"
)]

mod approvals;
mod approvals_crash;
mod calls;
mod copies;
mod counters;
mod crash;
mod disk;
mod opening;
mod people;
mod processes;
mod server;
mod support;
mod tools;

macro_rules! on_both {
    ($($file:ident: $($test:ident)*;)*) => {
        mod sqlite {
            $($(#[tokio::test(flavor = "multi_thread")]
            async fn $test() {
                crate::$file::$test(crate::support::Site::sqlite()).await;
            })*)*
        }
        mod postgres {
            $($(#[tokio::test(flavor = "multi_thread")]
            async fn $test() {
                crate::$file::$test(crate::support::Site::postgres().await).await;
            })*)*
        }
    };
}

on_both! {
    tools:
        a_registration_reads_back_column_by_column
        a_name_is_taken_once
        lists_are_by_name_and_by_page
        an_update_does_not_overwrite_another
        status_and_health_are_noted
        what_a_store_cannot_hold_is_refused;
    calls:
        calls_are_written_and_read_by_page
        calls_are_filtered
        calls_are_durable_when_asked
        the_end_of_a_call_completes_its_beginning
        odd_names_do_not_hold_up_the_log
        who_waits_does_not_starve_who_does_not
        old_calls_go
        a_clock_that_jumped_ahead_costs_a_day_at_a_time;
    people:
        grants_come_and_go
        trust_comes_and_goes_and_is_imported_once
        tokens_are_known_by_their_hash
        what_a_token_made_ends_with_it
        a_todo_list_is_one_threads_and_replaced;
    approvals:
        an_approval_goes_its_way_once
        the_same_call_finds_its_question
        a_yes_is_for_exactly_what_was_asked
        only_what_is_allowed_is_decided_and_only_once
        what_is_over_is_over
        a_runner_that_died_leaves_an_interrupted_call
        of_many_who_try_one_succeeds
        changes_are_read_in_their_order;
    approvals_crash:
        nothing_is_lost_or_used_twice_over_kill_9;
    opening:
        changes_are_told_across_connections
        a_newer_store_is_refused
        an_older_store_is_brought_up
        every_table_is_used
        many_open_a_new_store_at_once
        hashes_are_of_this_store
        a_write_given_up_leaves_nothing;
    counters:
        limits_are_exact_across_processes
        who_gives_up_is_not_counted
        a_counter_is_kept;
    crash:
        acknowledged_changes_survive_kill_9;
}
