//! Scalar expressions as trees.

use std::ops::{Add, Mul, Sub};

/// A comparison of two numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    /// The numbers differ.
    Differs,
    /// The numbers are equal.
    Equals,
    /// The first number is larger.
    Above,
    /// The first number is not larger.
    NotAbove,
}

/// A scalar expression of 32 bits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expr {
    /// A literal.
    Number(i32),
    /// A variable of the kernel.
    Name(String),
    /// A field of the request.
    Field(String),
    /// A constant of the geometry, by its name in the text.
    Constant(&'static str),
    /// A word of a line in UB.
    Word(String, Box<Self>),
    /// The negated number.
    Negative(Box<Self>),
    /// `a + b`.
    Sum(Box<Self>, Box<Self>),
    /// `a - b`.
    Difference(Box<Self>, Box<Self>),
    /// `a * b`.
    Product(Box<Self>, Box<Self>),
    /// The larger number.
    Max(Box<Self>, Box<Self>),
    /// The smaller number.
    Min(Box<Self>, Box<Self>),
    /// The condition that two numbers have a relation.
    Test(Relation, Box<Self>, Box<Self>),
    /// The opposite of a condition.
    Not(Box<Self>),
    /// The disjunction of two conditions.
    Either(Box<Self>, Box<Self>),
}

impl Expr {
    /// Returns a variable of the kernel.
    pub fn name(name: impl Into<String>) -> Self {
        Self::Name(name.into())
    }

    /// Returns a field of the request.
    pub fn field(name: impl Into<String>) -> Self {
        Self::Field(name.into())
    }

    /// Returns a word of a line in UB.
    pub fn word(line: &str, at: Self) -> Self {
        Self::Word(line.into(), Box::new(at))
    }

    /// Returns the larger number.
    pub fn max(a: Self, b: Self) -> Self {
        Self::Max(Box::new(a), Box::new(b))
    }

    /// Returns the smaller number.
    pub fn min(a: Self, b: Self) -> Self {
        Self::Min(Box::new(a), Box::new(b))
    }

    /// Returns the condition that two numbers have a relation.
    pub fn test(relation: Relation, a: Self, b: Self) -> Self {
        Self::Test(relation, Box::new(a), Box::new(b))
    }

    /// Returns the negated number.
    #[must_use]
    pub fn negative(self) -> Self {
        Self::Negative(Box::new(self))
    }

    /// Returns the opposite of a condition; for a test, the test of the opposite relation.
    #[must_use]
    pub fn opposite(self) -> Self {
        let relation = match self {
            Self::Test(Relation::Differs, ..) => Relation::Equals,
            Self::Test(Relation::Equals, ..) => Relation::Differs,
            Self::Test(Relation::Above, ..) => Relation::NotAbove,
            Self::Test(Relation::NotAbove, ..) => Relation::Above,
            other => return Self::Not(Box::new(other)),
        };
        if let Self::Test(_, a, b) = self { Self::Test(relation, a, b) } else { self }
    }

    /// Returns the disjunction of two conditions.
    pub fn either(a: Self, b: Self) -> Self {
        Self::Either(Box::new(a), Box::new(b))
    }

    /// Returns whether the expression is a condition and not a number.
    pub fn is_condition(&self) -> bool {
        matches!(self, Self::Test(..) | Self::Not(_) | Self::Either(..))
    }

    /// Returns whether the expression is a literal or a name.
    pub fn is_atom(&self) -> bool {
        matches!(self, Self::Number(_) | Self::Name(_) | Self::Field(_) | Self::Constant(_))
    }

    /// Visits the expression and all expressions in it.
    pub fn each<'e>(&'e self, f: &mut dyn FnMut(&'e Self)) {
        f(self);
        match self {
            Self::Number(_) | Self::Name(_) | Self::Field(_) | Self::Constant(_) => {}
            Self::Word(_, a) | Self::Negative(a) | Self::Not(a) => a.each(f),
            Self::Sum(a, b)
            | Self::Difference(a, b)
            | Self::Product(a, b)
            | Self::Max(a, b)
            | Self::Min(a, b)
            | Self::Either(a, b)
            | Self::Test(_, a, b) => {
                a.each(f);
                b.each(f);
            }
        }
    }
}

impl From<i32> for Expr {
    fn from(n: i32) -> Self {
        Self::Number(n)
    }
}

impl Add for Expr {
    type Output = Self;
    fn add(self, b: Self) -> Self {
        if b == Self::Number(0) {
            return self;
        }
        Self::Sum(Box::new(self), Box::new(b))
    }
}

impl Sub for Expr {
    type Output = Self;
    fn sub(self, b: Self) -> Self {
        Self::Difference(Box::new(self), Box::new(b))
    }
}

impl Mul for Expr {
    type Output = Self;
    fn mul(self, b: Self) -> Self {
        if b == Self::Number(1) {
            return self;
        }
        Self::Product(Box::new(self), Box::new(b))
    }
}
