module.exports = new Function('return (;');
