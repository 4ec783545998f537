/** How charts look: on light and on dark pages alike. */
import type { Config } from 'vega-lite';

export const themeNames = ['light', 'dark'] as const;
export type ThemeName = (typeof themeNames)[number];

interface Colours {
  readonly background: string;
  readonly text: string;
  readonly grid: string;
}

const colours: Readonly<Record<ThemeName, Colours>> = {
  light: { background: '#ffffff', text: '#1f2328', grid: '#d1d9e0' },
  dark: { background: '#0d1117', text: '#e6edf3', grid: '#30363d' },
};

/** Ours and BullMQ's; better and worse than BullMQ. Told apart by those who see no red or green, too. */
export const palette = { ours: '#d9480f', theirs: '#4c78a8', better: '#2a9d8f', worse: '#e76f51' } as const;

export function configOf(theme: ThemeName): Config {
  const { background, text, grid } = colours[theme];
  const font = 'system-ui, sans-serif';
  const words = { labelColor: text, titleColor: text, labelFont: font, titleFont: font };
  return {
    background,
    font,
    padding: 12,
    title: { color: text, subtitleColor: text, anchor: 'start', fontSize: 15, subtitleFontSize: 11, offset: 14 },
    axis: { ...words, gridColor: grid, domainColor: grid, tickColor: grid, labelLimit: 420 },
    legend: { ...words, orient: 'top', title: null, labelLimit: 300 },
    header: words,
    text: { color: text, font, fontSize: 11 },
    rule: { color: text },
    view: { stroke: null },
  };
}
