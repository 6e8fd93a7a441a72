//! A process that asks for approvals and runs what was approved, or that decides; tests start it and kill it.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a program for tests: it may panic, and it speaks to the one who started it"
)]

use std::fs::File;
use std::io::Write;
use std::time::Duration;

use toolcrib_core::Object;
use toolcrib_core::store::{
    ApprovalState, Asked, Claim, Decision, DecisionKind, NewApproval, RunEnd, Subject,
};
use toolcrib_store::{Approvals, NewDecision, Store};

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let [role, url, first, marks] = arguments[..] else {
        panic!("{arguments:?}");
    };
    let store = Store::open(&url.parse().unwrap()).await.unwrap();
    let approvals = store.approvals();
    let first: u64 = first.parse().unwrap();
    match role {
        "wait" => wait(&approvals, first, marks).await,
        "decide" => decide(&approvals).await,
        _ => panic!("{role}"),
    }
}

fn subject() -> Subject {
    Subject {
        project: Some("/p".into()),
        agent: "default".into(),
        token: None,
        tool: "mail".into(),
        content: "1".into(),
    }
}

fn arguments(n: u64) -> String {
    format!("{{\"n\":{n},}}")
}

/// Asks for one call after the other, and runs each that was approved: a line in the file of marks is a run.
async fn wait(approvals: &Approvals, first: u64, marks: &str) {
    let runner = format!("pid {}", std::process::id());
    let mut marks = File::options()
        .append(true)
        .create(true)
        .open(marks)
        .unwrap();
    for n in first.. {
        let new = NewApproval {
            subject: subject(),
            client: "test".into(),
            arguments: arguments(n),
            shown: arguments(n),
            note: None,
            allowed: DecisionKind::ALL.to_vec(),
            life: Duration::from_secs(600),
        };
        let mut approval = match approvals.ask(new).await.unwrap() {
            Asked::New(approval) | Asked::Known(approval) => approval,
            Asked::Full => panic!("full"),
        };
        println!("asked {n} {}", approval.id);
        while approval.state == ApprovalState::Pending {
            // sleeps: how often it is looked at; another process decides
            tokio::time::sleep(Duration::from_millis(1)).await;
            approval = approvals.get(&approval.id).await.unwrap().unwrap();
        }
        let arguments = match &approval.edited {
            Some(edited) => edited.text().to_owned(),
            None => arguments(n),
        };
        let claim = Claim {
            id: approval.id.clone(),
            subject: subject(),
            arguments,
            call: "call".into(),
            limit: Duration::from_secs(600),
        };
        if approvals.claim(&claim, &runner).await.unwrap() {
            writeln!(marks, "{}", approval.id).unwrap();
            println!("ran {n} {}", approval.id);
            let ended = approvals.end(&approval.id, &runner, RunEnd::Used);
            assert!(ended.await.unwrap());
            println!("used {n} {}", approval.id);
        }
    }
}

/// Decides whatever waits: mostly yes, now and then with other arguments, now and then no.
async fn decide(approvals: &Approvals) {
    loop {
        let pending = Some(ApprovalState::Pending);
        for (at, one) in approvals
            .list(None, pending, 9)
            .await
            .unwrap()
            .iter()
            .enumerate()
        {
            let seed = one.created_ms + at as u64;
            let edit = "{\"n\":0}";
            let (decision, arguments) = match seed % 5 {
                0 => (Decision::Reject(None), None),
                1 => {
                    let edited = Object::parse(edit).unwrap();
                    (Decision::Edit(edited), Some(edit.to_owned()))
                }
                _ => (Decision::Approve, None),
            };
            let new = NewDecision {
                decision,
                arguments,
                by: "test".to_owned(),
                how: "test".to_owned(),
            };
            if let Some(now) = approvals.decide(&one.id, new).await.unwrap() {
                println!("decided {} {}", now.state, one.id);
            }
        }
        // sleeps: how often it is looked at; other processes ask
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}
