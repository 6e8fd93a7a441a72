# methods with the names of process functions
def run(pool, job):
    pool.spawn(job)
    job.fork()
    job.kill()
    return job.run(), job.call(), job.Popen
