import { existsSync, readFileSync } from 'node:fs';
import { join, posix } from 'node:path';
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitepress';
import type { DefaultTheme, MarkdownRenderer } from 'vitepress';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

const page = (text: string, link: string): DefaultTheme.SidebarItem => ({ text, link: `/${link}` });

const pageIfThere = (text: string, link: string): DefaultTheme.SidebarItem[] =>
  existsSync(join(ROOT, 'docs', `${link}.md`)) ? [page(text, link)] : [];

const sidebar: DefaultTheme.SidebarItem[] = [
  {
    text: 'Begin',
    items: [
      page('Quick start', 'quick-start'),
      page('Moving from BullMQ', 'moving-from-bullmq'),
      ...pageIfThere('Code of BullMQ 5', 'v5'),
      page('Differences from BullMQ', 'differences'),
      page('Exports, and what is missing', 'parity'),
      page('Comparison', 'comparison'),
    ],
  },
  {
    text: 'Guides',
    items: [
      page('Retries and backoff', 'guides/retries'),
      page('Delays', 'guides/delays'),
      page('Priorities', 'guides/priorities'),
      page('Rate limits', 'guides/rate-limits'),
      page('Deduplication', 'guides/deduplication'),
      page('Job schedulers', 'guides/schedulers'),
      page('Flows', 'guides/flows'),
      page('Sandboxed processors', 'guides/sandboxed-processors'),
      page('Groups', 'guides/groups'),
      page('Batches', 'guides/batches'),
      page('Cancelling', 'guides/cancelling'),
      page('Time limits', 'guides/timeouts'),
      page('Deadlines', 'guides/deadlines'),
      page('Observables', 'guides/observables'),
      page('Events', 'guides/events'),
      page('Telemetry and Prometheus', 'guides/telemetry'),
      page('Latency', 'guides/latency'),
      page('Autoscaling and alerts', 'guides/autoscaling'),
      page('Finding jobs', 'guides/finding-jobs'),
      page('Failed jobs', 'guides/failed-jobs'),
      page('Length limits', 'guides/length-limits'),
      page('TypeScript', 'guides/typescript'),
    ],
  },
  {
    text: 'In production',
    items: [
      page('Going to production', 'production'),
      page('Connections', 'connections'),
      page('Guarantees', 'guarantees'),
      page('Faults and recovery', 'chaos'),
      page('Troubleshooting', 'troubleshooting'),
      ...pageIfThere('Command line', 'cli'),
      page('Tools and bundlers', 'tools'),
      page('Versions', 'versions'),
    ],
  },
  {
    text: 'Behind it',
    items: [
      page('How it works', 'internals'),
      page('Keys in Redis', 'keys'),
      page('Figures', 'figures'),
      page('How to release', 'releasing'),
    ],
  },
];

export default defineConfig({
  title: 'ChasquiMQ',
  description: "A fast job queue for Node.js on Redis: a Rust engine behind BullMQ's API",
  base: process.env.DOCS_BASE ?? '/',
  markdown: { config: leadOutOfTheSite },
  themeConfig: {
    search: { provider: 'local' },
    sidebar,
    nav: [
      { text: 'Guides', link: '/quick-start' },
      { text: 'API', link: '/api/index.html', target: '_self' },
    ],
    outline: [2, 3],
  },
});

/** Pages link to files of the repository, which are not of the site: to where it is published, or, while that is not known, nowhere. */
function leadOutOfTheSite(markdown: MarkdownRenderer): void {
  const { repository } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
    repository?: string | { url: string };
  };
  const url = (typeof repository === 'object' ? repository.url : repository)?.replaceAll(/^git\+|\.git$/g, '');
  markdown.core.ruler.push('lead-out-of-the-site', ({ tokens, env }) => {
    const { relativePath = '' } = env as { relativePath?: string };
    for (const { children } of tokens) {
      let isOut = false;
      for (const token of children ?? []) {
        if (token.type === 'link_open') {
          const href = token.attrGet('href') ?? '';
          const target = posix.join('docs', posix.dirname(relativePath), href);
          isOut = !/^([a-z]+:|#|\/)/.test(href) && !target.startsWith('docs/');
          if (isOut && url) token.attrSet('href', `${url}/blob/main/${target}`);
          else if (isOut) [token.tag, token.attrs] = ['span', null];
        } else if (token.type === 'link_close' && isOut && !url) token.tag = 'span';
      }
    }
  });
}
