// The quick start by `require`.
const library = require('LIBRARY');

void import('./quick-start.mjs').then(({ quickStart }) => quickStart(library));
