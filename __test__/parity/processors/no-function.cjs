module.exports = { notAFunction: true };
