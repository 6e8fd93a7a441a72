//! TypeScript and JavaScript.
