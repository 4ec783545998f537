// A Nest application with a queue, a service that adds to it, and a processor.
import 'reflect-metadata';
import { BullModule, InjectQueue, OnWorkerEvent, Processor, WorkerHost } from '@nestjs/bullmq';
import { Injectable, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { type Job, Queue } from 'bullmq';

interface Track {
  file: string;
}

@Injectable()
class Tracks {
  constructor(@InjectQueue('tracks') private readonly queue: Queue<Track, string>) {}

  async transcode(files: string[]): Promise<void> {
    await this.queue.addBulk(files.map((file) => ({ name: 'transcode', data: { file } })));
  }
}

@Processor('tracks', { concurrency: 10 })
class Transcoder extends WorkerHost {
  /** Stands in for the work on a track. */
  override async process(job: Job<Track, string>): Promise<string> {
    await job.updateProgress(50);
    return job.data.file.replace(/\.wav$/, '.ogg');
  }

  @OnWorkerEvent('completed')
  onCompleted(job: Job<Track, string>): void {
    console.log(`${job.data.file} is ${job.returnvalue}`);
  }

  @OnWorkerEvent('failed')
  onFailed(job: Job<Track, string> | undefined, error: Error): void {
    console.error(`${job?.data.file}: ${error.message}`);
  }
}

@Module({
  imports: [
    BullModule.forRoot({ connection: { url: process.env.REDIS_URL ?? 'redis://localhost:6379' } }),
    BullModule.registerQueue({ name: 'tracks', defaultJobOptions: { attempts: 3, removeOnComplete: true } }),
  ],
  providers: [Tracks, Transcoder],
})
class Application {}

const app = await NestFactory.createApplicationContext(Application, { logger: ['error', 'warn'] });
// closes queues and workers on SIGTERM
app.enableShutdownHooks();
await app.get(Tracks).transcode(['one.wav', 'two.wav']);
