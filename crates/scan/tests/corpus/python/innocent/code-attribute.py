# attributes called code
def status(response, error):
    return response.code, error.code, response.status_code
