// bull-board (board-app.mjs), for a browser: says its address, and closes when it is told anything.
import { base, close } from './board-app.mjs';

console.log('listening', base);
process.stdin.once('data', () => void close());
