// A Chromium of this machine without a window, for tests that look at pages. `npm test` brings one (.ci/browser.mjs).
import { existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { chromium, type BrowserContext, type Page } from 'playwright-core';
import { ROOT } from '../support/registry.js';

const EXECUTABLES = [
  ...['chromium', 'chromium-browser', 'google-chrome'].map((name) => `/usr/bin/${name}`),
  '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
];
const QUIET =
  '--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking ' +
  '--disable-component-update --disable-sync';
/** For how long a page's text stays as it is once there is nothing more to come. */
const STILL_MS = 200;
const LONG_MS = 60_000;

function executable(): string {
  const found = process.env.CHROMIUM ?? EXECUTABLES.find(existsSync);
  if (!found)
    throw new Error('there is no Chromium: install it (apt-get install chromium), or name its path in CHROMIUM');
  return found;
}

export class Browser {
  readonly page: Page;
  /** Errors of scripts, and answers of 500 and above. */
  readonly errors: string[] = [];
  readonly #context: BrowserContext;
  readonly #profile: string;
  /** Requests without an answer. */
  #open = 0;

  private constructor(context: BrowserContext, profile: string, page: Page) {
    this.#context = context;
    this.#profile = profile;
    this.page = page;
    page.on('request', () => this.#open++);
    page.on('requestfinished', () => this.#open--);
    page.on('requestfailed', () => this.#open--);
    page.on('pageerror', (error) => this.errors.push(String(error)));
    page.on('response', (response) => {
      if (response.status() >= 500) this.errors.push(`${response.status()} ${response.url()}`);
    });
  }

  static async open(): Promise<Browser> {
    const profile = mkdtempSync(join(tmpdir(), 'chasquimq-browser-'));
    const options = { executablePath: executable(), headless: true, args: QUIET.split(' ') };
    const context = await chromium.launchPersistentContext(profile, options);
    const page = context.pages()[0] ?? (await context.newPage());
    page.setDefaultTimeout(LONG_MS);
    // fonts and the like, which are not on this machine
    await page.route(
      (url) => url.hostname !== '127.0.0.1',
      (route) => route.abort(),
    );
    return new Browser(context, profile, page);
  }

  /** Goes to a path of that server as a link on its page does, once there is one of its pages. */
  async go(base: string, path: string): Promise<void> {
    if (!this.page.url().startsWith(base)) await this.page.goto(base + path);
    else {
      const url = JSON.stringify(base + path);
      await this.page.evaluate(`history.pushState({}, '', ${url}); dispatchEvent(new PopStateEvent('popstate'));`);
    }
  }

  /** The lines a person sees, once the page has loaded what it wants, and shows it. */
  async lines(): Promise<string[]> {
    for (let before = ''; ;) {
      await this.page.waitForTimeout(STILL_MS);
      const now = await this.#text();
      if (this.#open === 0 && now === before) return now.split('\n');
      before = now;
    }
  }

  /** The lines a person sees now. */
  async linesNow(): Promise<string[]> {
    return (await this.#text()).split('\n');
  }

  /** Resolves with the answer to the next request other than GET. */
  async sent(): Promise<void> {
    await this.page.waitForResponse((response) => response.request().method() !== 'GET');
  }

  /** Where a picture of the page is kept. */
  async picture(name: string): Promise<string> {
    const folder = join(ROOT, 'target/pictures');
    mkdirSync(folder, { recursive: true });
    const path = join(folder, `${name}.png`);
    await this.page.screenshot({ path, fullPage: true });
    return path;
  }

  async close(): Promise<void> {
    await this.#context.close();
    rmSync(this.#profile, { recursive: true, force: true });
  }

  #text(): Promise<string> {
    return this.page.evaluate('document.body.innerText');
  }
}
