// an import by a template
const cp = await import(`child_${"process"}`); // <-
