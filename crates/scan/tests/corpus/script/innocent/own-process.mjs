// an own variable called process
const process = { env: { A: 1 }, exit() {} };
process.exit();
export default process.env;
