// Command conformance prints one line for each scenario of bindings/conformance/README.md. All languages print the same.
package main

func main() {
	libraryScenarios()
	groupScenarios()
	bufferScenarios()
	serverScenarios()
	optimizerScenarios()
	saveScenarios()
	misuseScenarios()
	printTables()
}
