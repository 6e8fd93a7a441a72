// methods with the names of process functions
export const run = (pool: any, job: any) => [pool.spawn(job), job.exec(), job.kill(), job.fork(), job.writeFile("x"), job.fetch()];
