// types alone
import type { ChildProcess } from "node:child_process";
import { type Socket } from "./net.ts";
export type Both = ChildProcess | Socket;
