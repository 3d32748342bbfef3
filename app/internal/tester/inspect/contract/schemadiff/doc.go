// Package schemadiff compares two JSON Schemas by what they mean: which values one accepts and
// the other does not, and what they tell about those values. Texts that mean the same have no
// difference: references that are written out, definitions with other names, members and
// alternatives in another order, "type": ["x"] for "type": "x", anyOf for a list of types, const
// for an enum of one value, a number written in another way.
//
// A schema is brought into one form ([node]): for each of the six JSON types what a value of
// that type must be, as a list of alternatives. What has no place in that form (not, if,
// contains and the like) is compared as a whole.
package schemadiff
