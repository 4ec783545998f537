/** In each process of such a project, before its tests: tells them, and their programs, where queues are. */
import { inject } from 'vitest';

process.env.CONNECTION = JSON.stringify(inject('connection'));
