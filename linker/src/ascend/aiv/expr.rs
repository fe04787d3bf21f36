//! Scalar expressions as trees.

/// An operator on two numbers or conditions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    Sum,
    Difference,
    Product,
    /// `a / b`, rounded to zero.
    Quotient,
    /// The remainder of that division.
    Remainder,
    Max,
    Min,
    Differs,
    Equals,
    Above,
    NotAbove,
    Or,
}

/// A scalar expression of 32 bits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expr {
    Number(i32),
    /// A variable of the kernel.
    Name(String),
    /// A field of the request.
    Field(String),
    /// A constant of the geometry, by its name in the text.
    Constant(&'static str),
    /// One of the two numbers that a variable of 64 bits consists of.
    Lane {
        /// The variable.
        of: String,
        /// The index of the number, from the lowest bits on.
        n: u32,
    },
    Negative(Box<Self>),
    Not(Box<Self>),
    /// Two to the power of a number.
    PowerOfTwo(Box<Self>),
    Binary(Operator, Box<Self>, Box<Self>),
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

    /// Returns an operation on two operands; the first one alone if the second one does not change it.
    pub fn binary(operator: Operator, a: impl Into<Self>, b: impl Into<Self>) -> Self {
        match (operator, a.into(), b.into()) {
            (Operator::Sum, a, Self::Number(0)) | (Operator::Product, a, Self::Number(1)) => a,
            (_, a, b) => Self::Binary(operator, Box::new(a), Box::new(b)),
        }
    }

    /// Returns the larger number.
    pub fn max(a: impl Into<Self>, b: impl Into<Self>) -> Self {
        Self::binary(Operator::Max, a, b)
    }

    /// Returns the smaller number.
    pub fn min(a: impl Into<Self>, b: impl Into<Self>) -> Self {
        Self::binary(Operator::Min, a, b)
    }

    /// Returns the condition that the first number is above the second one.
    pub fn above(a: impl Into<Self>, b: impl Into<Self>) -> Self {
        Self::binary(Operator::Above, a, b)
    }

    /// Returns the value of a number or condition in which each variable has the value that `of` returns
    /// for it; `None` if the value is unknown.
    pub fn value(&self, of: &dyn Fn(&str) -> Option<i32>) -> Option<i32> {
        match self {
            Self::Number(n) => Some(*n),
            Self::Name(name) => of(name),
            Self::Not(a) => Some(i32::from(a.value(of)? == 0)),
            Self::Binary(relation, a, b) => {
                let (a, b) = (a.value(of)?, b.value(of)?);
                Some(i32::from(match relation {
                    Operator::Differs => a != b,
                    Operator::Equals => a == b,
                    Operator::Above => a > b,
                    Operator::NotAbove => a <= b,
                    _ => return None,
                }))
            }
            _ => None,
        }
    }

    /// Returns two to the power of a number.
    pub fn power_of_two(a: Self) -> Self {
        Self::PowerOfTwo(Box::new(a))
    }

    /// Returns the negated number.
    #[must_use]
    pub fn negative(self) -> Self {
        Self::Negative(Box::new(self))
    }

    /// Returns the opposite of a condition; for a relation of numbers, the opposite relation.
    #[must_use]
    pub fn opposite(self) -> Self {
        match self {
            Self::Binary(Operator::Differs, a, b) => Self::Binary(Operator::Equals, a, b),
            Self::Binary(Operator::Equals, a, b) => Self::Binary(Operator::Differs, a, b),
            Self::Binary(Operator::Above, a, b) => Self::Binary(Operator::NotAbove, a, b),
            Self::Binary(Operator::NotAbove, a, b) => Self::Binary(Operator::Above, a, b),
            other => Self::Not(Box::new(other)),
        }
    }

    /// Returns whether the expression is a condition and not a number.
    pub fn is_condition(&self) -> bool {
        use Operator::{Above, Differs, Equals, NotAbove, Or};
        matches!(self, Self::Not(_) | Self::Binary(Or | Differs | Equals | Above | NotAbove, ..))
    }

    /// Returns whether the expression is a literal or a name.
    pub fn is_atom(&self) -> bool {
        matches!(self, Self::Number(_) | Self::Name(_) | Self::Field(_) | Self::Constant(_))
    }

    /// Returns the expression and all expressions in it.
    pub fn all(&self) -> Vec<&Self> {
        let inside = match self {
            Self::Negative(a) | Self::Not(a) | Self::PowerOfTwo(a) => a.all(),
            Self::Binary(_, a, b) => [a.all(), b.all()].concat(),
            _ => Vec::new(),
        };
        [vec![self], inside].concat()
    }
}

impl From<i32> for Expr {
    fn from(n: i32) -> Self {
        Self::Number(n)
    }
}

/// Implements the arithmetic of a type with all types that become expressions.
macro_rules! arithmetic {
    ($of:ty) => {
        $crate::ascend::aiv::expr::arithmetic! {
            $of: Add add Sum, Sub sub Difference, Mul mul Product, Div div Quotient, Rem rem Remainder
        }
    };
    ($of:ty: $($trait:ident $method:ident $operator:ident),*) => {$(
        impl<T: Into<Expr>> std::ops::$trait<T> for $of {
            type Output = Expr;
            fn $method(self, b: T) -> Expr {
                Expr::binary($crate::ascend::aiv::expr::Operator::$operator, self, b)
            }
        }
    )*};
}
pub(crate) use arithmetic;
arithmetic!(Expr);
