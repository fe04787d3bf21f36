//! Scalar expressions, as trees.

use std::ops::{Add, Mul, Sub};

/// How two numbers compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    /// They differ.
    Differs,
    /// They are the same.
    Equals,
    /// The first one is larger.
    Above,
    /// The first one is not larger.
    NotAbove,
}

/// A scalar, 32 bits.
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
    /// The number with its sign turned.
    Negative(Box<Self>),
    /// `a + b`.
    Sum(Box<Self>, Box<Self>),
    /// `a - b`.
    Difference(Box<Self>, Box<Self>),
    /// `a * b`.
    Product(Box<Self>, Box<Self>),
    /// The larger one.
    Max(Box<Self>, Box<Self>),
    /// The smaller one.
    Min(Box<Self>, Box<Self>),
    /// Whether two numbers compare so.
    Test(Relation, Box<Self>, Box<Self>),
    /// Whether a condition does not hold.
    Not(Box<Self>),
    /// Whether one of two conditions holds.
    Either(Box<Self>, Box<Self>),
}

impl Expr {
    /// A variable.
    pub fn name(name: impl Into<String>) -> Self {
        Self::Name(name.into())
    }

    /// A field of the request.
    pub fn field(name: impl Into<String>) -> Self {
        Self::Field(name.into())
    }

    /// A word of a line in UB.
    pub fn word(line: &str, at: Self) -> Self {
        Self::Word(line.into(), Box::new(at))
    }

    /// The larger one.
    pub fn max(a: Self, b: Self) -> Self {
        Self::Max(Box::new(a), Box::new(b))
    }

    /// The smaller one.
    pub fn min(a: Self, b: Self) -> Self {
        Self::Min(Box::new(a), Box::new(b))
    }

    /// Whether two numbers compare so.
    pub fn test(relation: Relation, a: Self, b: Self) -> Self {
        Self::Test(relation, Box::new(a), Box::new(b))
    }

    /// The number with its sign turned.
    #[must_use]
    pub fn negative(self) -> Self {
        Self::Negative(Box::new(self))
    }

    /// Whether a condition does not hold; of a test, the opposite test.
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

    /// Whether one of two conditions holds.
    pub fn either(a: Self, b: Self) -> Self {
        Self::Either(Box::new(a), Box::new(b))
    }

    /// Whether it holds or does not, and is no number.
    pub fn is_condition(&self) -> bool {
        matches!(self, Self::Test(..) | Self::Not(_) | Self::Either(..))
    }

    /// Whether it is a literal or a name.
    pub fn is_atom(&self) -> bool {
        matches!(self, Self::Number(_) | Self::Name(_) | Self::Field(_) | Self::Constant(_))
    }

    /// Visits it and all in it.
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
