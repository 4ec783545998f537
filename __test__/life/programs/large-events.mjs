// Reads a queue's events from the beginning until JOBS jobs have completed or failed, and says how long what they tell of is.
import { QueueEvents } from 'chasquimq';

const { QUEUE, CONNECTION, JOBS } = process.env;
const events = new QueueEvents(QUEUE, { connection: JSON.parse(CONNECTION), lastEventId: '0-0' });
events.on('error', (error) => console.log('error', error.message));
let [left, characters] = [Number(JOBS), 0];
await new Promise((resolve) => {
  const tell = ({ returnvalue, failedReason }) => {
    characters += (returnvalue ?? failedReason).length;
    if (--left === 0) resolve();
  };
  events.on('completed', tell);
  events.on('failed', tell);
});
console.log('told', characters);
await events.close();
