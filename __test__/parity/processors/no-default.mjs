// Exports a function, and not as the default.
export const processor = async () => 'never';
