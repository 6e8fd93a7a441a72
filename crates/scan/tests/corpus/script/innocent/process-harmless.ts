// the harmless part of process
export const info = [process.cwd(), process.platform, process.version, process.hrtime.bigint(), process.memoryUsage()];
process.stdout.write("x");
