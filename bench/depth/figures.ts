/** What an operation costs: wall time, and CPU of the server, in microseconds. */
import { sideNames } from '../pairs.js';
import type { BothSides, Side as SideName } from '../pairs.js';
import type { Server } from '../server.js';
import { median } from '../statistics.js';
import { operations } from './operations.js';
import type { Operation, Side } from './operations.js';

const ROUNDS = 6;

export interface Cost {
  /** Medians of the rounds. */
  readonly wallMicros: number;
  readonly redisMicros: number;
}

export interface Figure {
  readonly operation: string;
  readonly cost: BothSides<Cost>;
}

export interface AtDepth {
  /** Jobs that wait, some thousands more or less. */
  readonly depth: number;
  readonly figures: readonly Figure[];
}

export async function measureAll(server: Server, sides: BothSides<Side>): Promise<Figure[]> {
  const figures: Figure[] = [];
  for (const operation of operations) figures.push(await measureOne(server, sides, operation));
  return figures;
}

/** Whoever goes first goes second in the next round. The round before the first warms up. */
async function measureOne(server: Server, sides: BothSides<Side>, operation: Operation): Promise<Figure> {
  const costs: Record<SideName, Cost[]> = { base: [], challenger: [] };
  for (let round = 0; round <= ROUNDS; round += 1) {
    const order = round % 2 === 0 ? sideNames : sideNames.toReversed();
    for (const side of order) {
      const cost = await costOf(server, sides[side], operation, round);
      if (round > 0) costs[side].push(cost);
    }
  }
  const middle = (side: SideName): Cost => ({
    wallMicros: rounded(median(costs[side].map(({ wallMicros }) => wallMicros))),
    redisMicros: rounded(median(costs[side].map(({ redisMicros }) => redisMicros))),
  });
  return { operation: operation.name, cost: { base: middle('base'), challenger: middle('challenger') } };
}

async function costOf(server: Server, side: Side, { run, times }: Operation, round: number): Promise<Cost> {
  let [begin, end] = [0, 0];
  let cpu: Promise<number>[] = [];
  const clock = {
    start: () => {
      cpu = [server.cpuMicros()];
      begin = performance.now();
    },
    stop: () => {
      end = performance.now();
      cpu.push(server.cpuMicros());
    },
  };
  const done = await run(side, { round, times }, clock);
  const [before = NaN, after = NaN] = await Promise.all(cpu);
  return { wallMicros: ((end - begin) * 1e3) / done, redisMicros: (after - before) / done };
}

const rounded = (value: number) => Number(value.toPrecision(4));
