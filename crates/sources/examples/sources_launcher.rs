//! The smallest program that can be a launcher; the tests use it in place of the product's binary.

fn main() -> std::process::ExitCode {
    toolcrib_sandbox::launcher::run_if_asked().unwrap_or(std::process::ExitCode::FAILURE)
}
