//! `tollgate check`.

use hyper::Method;

use super::Exit;
use super::args::CheckArgs;
use super::asking::{ask, token};
use super::facts::body_of;
use super::response::{Told, ToldProblem};
use super::stdout::say;

pub(super) fn run(args: &CheckArgs) -> Exit {
    let body = match body_of(&args.what, args.cost) {
        Ok(body) => body,
        Err(reason) => return usage(&reason),
    };
    let token = match token("TOLLGATE_CHECK_TOKEN", "TOLLGATE_CHECK_TOKEN_FILE") {
        Ok(token) => token,
        Err(error) => return usage(&error.to_string()),
    };
    match ask(&args.server, token.as_deref(), (Method::POST, "/check", Some(body))) {
        Ok((200, answer)) => tell(&answer, args.json),
        Ok((status, answer)) => told_otherwise(status, &answer, args.json),
        Err(exit) => exit,
    }
}

fn usage(reason: &str) -> Exit {
    eprintln!("tollgate: {reason}");
    Exit::Usage
}

fn tell(answer: &str, json: bool) -> Exit {
    let told: Told = match serde_json::from_str(answer) {
        Ok(told) => told,
        Err(error) => {
            eprintln!("tollgate: that is no answer of a tollgate service: {error}");
            return Exit::NoAnswer;
        }
    };
    if json {
        say(&format!("{answer}\n"));
    } else {
        say(&format!("{}\n", told.sentence()));
    }
    if told.allowed { Exit::Success } else { Exit::Refused }
}

/// A wrong question is usage; a service that cannot answer is no answer.
fn told_otherwise(status: u16, answer: &str, json: bool) -> Exit {
    match serde_json::from_str::<ToldProblem>(answer) {
        Ok(problem) => {
            if json {
                say(&format!("{answer}\n"));
            }
            eprintln!("tollgate: {status}: {}", problem.detail);
            if (400..500).contains(&status) { Exit::Usage } else { Exit::NoAnswer }
        }
        Err(_) => {
            match serde_json::from_str::<Told>(answer) {
                // The store is lost, and the rule says to refuse until it is back.
                Ok(told) => {
                    if json {
                        say(&format!("{answer}\n"));
                    }
                    eprintln!("tollgate: {status}: {}", told.sentence());
                }
                Err(_) => eprintln!("tollgate: {status}: that is no answer of a tollgate service"),
            }
            Exit::NoAnswer
        }
    }
}
