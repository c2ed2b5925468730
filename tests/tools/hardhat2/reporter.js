// Mocha's tests as steps of a flow.

module.exports = class Steps {
  constructor(runner) {
    runner.on('pass', ({ title }) => console.log(`ok ${title}`))
    runner.on('fail', ({ title }, { message }) =>
      console.log(`failed ${title}: ${message.replaceAll(/\s+/g, ' ').slice(0, 400)}`))
  }
}
