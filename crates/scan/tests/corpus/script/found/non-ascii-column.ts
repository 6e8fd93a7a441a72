// after letters that take several bytes
const größe = "äöü😀"; eval(größe); // <-
