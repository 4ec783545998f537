// An ES module whose jobs fail.
export default async () => {
  throw new Error('boom');
};
