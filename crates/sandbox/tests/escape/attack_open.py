# Attempts of a tool that has the machine's own network. Follows guard.py, attack.py and attack_beyond.py.
print("connect\t%s\t" % ("held" if connect_to_loopback() else "BROKEN"), flush=True)
ATTEMPTS[:] = [
    reach_an_abstract_socket,
    reach_the_cribs_socket,
    reach_a_datagram_socket_by_path,
    open_a_raw_socket,
    signal_another,
    read_a_secret,
    read_the_cribs_environment,
    execute_a_shell,
    unshare_users,
]
run(ATTEMPTS)
