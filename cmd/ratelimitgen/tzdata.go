package main

// What tz= may name must not depend on what the machine that generates has
// installed.
import _ "time/tzdata"
